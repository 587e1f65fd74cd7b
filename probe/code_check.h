/* Checks that processes have the file's code in memory, before probes are attached to it.
 *
 * The kernel replaces the first byte of a probed instruction with a breakpoint, and executes a copy of the
 * instruction from the file. If another program has overwritten the instruction in memory with a jump, as
 * `cudatrace attach --inline` does, the process would execute the rest of the jump as code, and crash. */
#ifndef CT_PROBE_CODE_CHECK_H
#define CT_PROBE_CODE_CHECK_H

#include "mapped_drivers.h"
#include "targets.h"

/* The locks on the checked processes, whose code `cudatrace attach` does not change until the locks are
 * released. */
struct ct_code_check {
    int *lock;
    size_t count, room;
};

/* Locks and checks the process `pid`, or every process that maps the file if `pid` is 0. Returns 0; -ETXTBSY
 * if a process has different code in memory; -EBUSY if `cudatrace attach` is changing a process; or another
 * -errno. On error, sets *culprit to the process concerned, or to 0 if there is none. Call
 * ct_code_check_end() in any case. */
int ct_code_check_begin(struct ct_code_check *check, const struct ct_mapped_driver *file,
                        const struct ct_targets *targets, pid_t pid, pid_t *culprit);
void ct_code_check_end(struct ct_code_check *check);

#endif
