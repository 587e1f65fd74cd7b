/* Checks that the code of a file is unchanged in the memory of processes, before probes are attached to the
 * file.
 *
 * The kernel replaces the first byte of a probed instruction with a breakpoint, and executes a copy that it
 * reads from the file. Another program may have overwritten the instruction in memory with a jump, as
 * `cudatrace attach --inline` does. The process would then execute the remaining bytes of the jump as code,
 * and crash. */
#ifndef CT_PROBE_CODE_CHECK_H
#define CT_PROBE_CODE_CHECK_H

#include "mapped_drivers.h"
#include "targets.h"

/* The locks on the checked processes. Until they are released, `cudatrace attach` does not change the code of
 * these processes. */
struct ct_code_check {
    int *lock;
    size_t count, room;
};

/* Locks and checks the process `pid`, or every process that maps the file if `pid` is 0. Returns 0; -ETXTBSY
 * if a process has different code in memory; -EBUSY if `cudatrace attach` is changing a process; -EINTR
 * after Ctrl-C; or another -errno. On error, sets *culprit to the process that caused it, or to 0 if no
 * process did. Call ct_code_check_end() in any case. */
int ct_code_check_begin(struct ct_code_check *check, const struct ct_mapped_driver *file,
                        const struct ct_targets *targets, pid_t pid, pid_t *culprit);
void ct_code_check_end(struct ct_code_check *check);

#endif
