/* The capabilities and users of the probe and its writers. */
#ifndef CT_PROBE_RIGHTS_H
#define CT_PROBE_RIGHTS_H

#include <stdbool.h>
#include <sys/types.h>

/* Drops all capabilities except those that docs/commands/probe.md names. CAP_SYS_ADMIN is kept only for perf
 * events, which require it. Returns 0 or -errno. */
int ct_rights_keep(bool makes_events);

/* Sets the effective user. Returns 0 or -errno. */
int ct_rights_try_user(uid_t uid);
/* Permanently makes the effective user the process's only user, and drops all capabilities. If that user
 * differs from the probe's, sets the group to `gid`. On failure, ends the process, which must not continue
 * with its present rights. */
void ct_rights_drop(gid_t gid);

#endif
