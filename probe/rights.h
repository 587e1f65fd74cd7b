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
/* Makes the effective user the only one, for good, and drops all capabilities. If that user is not the
 * probe's, the group becomes `gid`. Ends the process on failure: it must not continue with these rights. */
void ct_rights_drop(gid_t gid);

#endif
