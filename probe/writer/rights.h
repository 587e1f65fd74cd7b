/* Changes the capabilities and users of the probe and its writers. */
#ifndef CT_PROBE_RIGHTS_H
#define CT_PROBE_RIGHTS_H

#include <stdbool.h>
#include <sys/types.h>

/* Drops all capabilities except those that docs/commands/probe.md names. Keeps CAP_SYS_ADMIN only if perf
 * events will be created, which requires it. Returns 0 or -errno. */
int ct_rights_keep(bool makes_events);

/* Sets the effective user. Returns 0 or -errno. */
int ct_rights_try_user(uid_t uid);
/* Permanently makes the current effective user the only user of the process, and drops all capabilities. If
 * this user is not the probe's own user, sets the group to `gid`. On failure, ends the process, which must
 * not continue with more rights. */
void ct_rights_drop(gid_t gid);

#endif
