/* Memory of the probed process, for the decoders (target_access.h). The record of a call contains the memory
 * that its decoder usually reads, as it was when the call returned. Other memory is read later, from the
 * process itself. It may have changed by then, or the process may have ended. */
#ifndef CT_PROBE_TARGET_MEMORY_H
#define CT_PROBE_TARGET_MEMORY_H

#include "calls.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Opens the memory of the process, which needs the right to trace it. Later reads need no right. If it fails,
 * only the memory in records can be read. */
void ct_target_open(pid_t pid);

/* Sets the call that is being decoded. Both are NULL for none. */
void ct_target_set_call(const struct ct_probe_values *values, const struct ct_probe_shape *shape);

enum ct_target_access {
    CT_TARGET_BYTES,
    CT_TARGET_TEXT, /* of CT_PROBE_READ_BYTES at most */
    CT_TARGET_BULK, /* of any length, or a file */
};
/* Passes each read to `act` instead, which refuses it by returning false. `to` is NULL unless the access is
 * CT_TARGET_BYTES. Setting NULL ends this. */
typedef bool ct_target_act(enum ct_target_access access, uint64_t address, void *to, uint64_t bytes,
                           void *data);
void ct_target_rehearse(ct_target_act *act, void *data);

#endif
