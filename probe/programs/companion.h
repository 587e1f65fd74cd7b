/* Companions: in a process whose driver calls the hook records, the probe records only kernel events and the
 * hooks of a table. The hook and the probe each write a segment for the process, in the same session. */
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
 * the session in the folder `dir`. The process must be in the same pid and time namespaces as the probe.
 */
bool ct_companion_find(struct ct_companion *companion, const struct ct_mapped_drivers *images, pid_t pid,
                       const char *dir, const char *session);

#endif
