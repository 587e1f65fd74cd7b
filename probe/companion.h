/* Companions: the probe accompanies the hook of a process, and records only events of the kernel and hooks.
 * The hook records the calls. Both write a segment of the same process, in the same session. */
#ifndef CT_PROBE_COMPANION_H
#define CT_PROBE_COMPANION_H

#include "mapped_drivers.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The process as the hook's segment describes it. */
struct ct_companion {
    pid_t pid;
    uid_t uid;
    uint64_t exec_ns;
    int32_t producer; /* of struct ct_segment */
};

/* Returns whether the probe can accompany the hook, and sets *companion. The hook's segment must be a file of
 * the session in the folder `dir`. The process must have the same namespaces of pids and time as the probe.
 */
bool ct_companion_find(struct ct_companion *companion, const struct ct_mapped_drivers *images, pid_t pid,
                       const char *dir, const char *session);

#endif
