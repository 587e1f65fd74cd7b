/* Checks that processes have the file's code in memory, before probes are attached to it.
 *
 * The kernel puts a breakpoint over the first byte of a probed instruction, and executes a copy of the
 * instruction that it takes from the file. If another program has put a jump over that instruction in memory,
 * as `cudatrace attach --inline` does, the process would execute the rest of the jump as code, and crash. */
#ifndef CT_PROBE_CODE_CHECK_H
#define CT_PROBE_CODE_CHECK_H

#include "mapped_drivers.h"
#include "targets.h"

/* The locks on the checked processes. Until they are released, `cudatrace attach` does not change their
 * code. */
struct ct_code_check {
    int *lock;
    size_t count, room;
};

/* Locks and checks the process `pid`, or every process that maps the file if `pid` is 0. Returns 0; -ETXTBSY
 * if a process has other code; -EBUSY if `cudatrace attach` is changing one; or another -errno. *culprit is
 * that process, or 0. Call ct_code_check_end() in each case. */
int ct_code_check_begin(struct ct_code_check *check, const struct ct_mapped_driver *file,
                        const struct ct_targets *targets, pid_t pid, pid_t *culprit);
void ct_code_check_end(struct ct_code_check *check);

#endif
