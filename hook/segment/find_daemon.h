/* The session's daemon: found by its control segment, and rung for. */
#ifndef CT_FIND_DAEMON_H
#define CT_FIND_DAEMON_H

#include "compiler.h"
#include "control.h"

#include <stdbool.h>
#include <stdint.h>

extern CT_LOCAL struct ct_control *ct_control; /* the session's segment; NULL before the first attachment */

/* A control segment's words, read once. */
struct ct_wishes {
    uint64_t ring_bytes;
    bool clock_is_counter, system;
};
/* The parts of the paths of a session's files. */
struct ct_session {
    const char *dir, *name; /* the settings' */
    uint32_t uid;
};
/* The session of the settings (setting.h); false if they name no valid session or directory. */
bool ct_daemon_session(struct ct_session *session);
/* Maps the control segment of the session's daemon, a user's own before the system's; NULL for none. */
struct ct_control *ct_daemon_find(const struct ct_session *session, struct ct_wishes *wishes);
/* Goes by that one from now on; false where it cannot be put in its place. */
bool ct_daemon_take(struct ct_control *control, const struct ct_wishes *wishes);
void ct_daemon_drop(struct ct_control *control);
/* Wakes the collector if it sleeps; true when it did. */
bool ct_daemon_ring(void);
/* In a fork's child: what its parent did is not done by it. */
void ct_daemon_forget(void);

#endif
