/* Reads the memory of the probed process for the decoders (target_access.h). The record of a call contains a
 * copy of the memory that the function's decoder usually reads, made when the call returned. Other memory is
 * read later, from the process itself. By then, the memory may have changed, or the process may have
 * ended. */
#ifndef CT_PROBE_TARGET_MEMORY_H
#define CT_PROBE_TARGET_MEMORY_H

#include "calls.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Opens the memory of the process, which requires the right to trace it. Later reads require no rights. If
 * opening fails, only memory that was copied into records can be read. The same is true if the process's user
 * may not trace the process, or if it does not run the recorded program any more. `pidfd` refers to the
 * process, and `end` is the channel's (struct ct_writer_plan). */
void ct_target_open(pid_t pid, uid_t uid, int pidfd, const uint32_t *end);

/* Sets the call that is being decoded, or no call if both arguments are NULL. */
void ct_target_set_call(const struct ct_probe_values *values, const struct ct_probe_shape *shape);

enum ct_target_access {
    CT_TARGET_BYTES,
    CT_TARGET_TEXT, /* of CT_PROBE_READ_BYTES at most */
    CT_TARGET_BULK, /* of any length, or a file */
};
/* Begins a rehearsal: from now on, each read is passed to `act`, which can refuse the read by returning
 * false. The `to` passed to `act` is NULL unless the access is CT_TARGET_BYTES. If `act` is NULL, ends the
 * rehearsal. */
typedef bool ct_target_act(enum ct_target_access access, uint64_t address, void *to, uint64_t bytes,
                           void *data);
void ct_target_rehearse(ct_target_act *act, void *data);

#endif
