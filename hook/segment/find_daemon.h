/* Finds the session's daemon by its control segment, and rings its doorbell. */
#ifndef CT_FIND_DAEMON_H
#define CT_FIND_DAEMON_H

#include "compiler.h"
#include "control.h"

#include <stdbool.h>
#include <stdint.h>

extern CT_LOCAL struct ct_control *ct_control; /* the session's control segment; NULL before the process has
                                                * its first segment */

/* Words of a control segment, which are read only once. */
struct ct_requested {
    uint64_t ring_bytes;
    bool clock_is_counter, system;
};
/* The parts of the paths of a session's files. */
struct ct_session {
    const char *dir, *name; /* from the settings */
    uint32_t uid;
};
/* Reads the session from the settings (setting.h). Returns false if the settings do not name a valid session
 * and directory. */
bool ct_daemon_session(struct ct_session *session);
/* Maps the control segment of the session's daemon. The user's own daemon takes precedence over the system's.
 * Returns NULL if there is no daemon. */
struct ct_control *ct_daemon_find(const struct ct_session *session, struct ct_requested *requested);
/* Makes that control segment the current one. Returns false if it cannot be moved to its address. */
bool ct_daemon_take(struct ct_control *control, const struct ct_requested *requested);
void ct_daemon_drop(struct ct_control *control);
/* Wakes the collector if it is asleep, and returns true in that case. */
bool ct_daemon_ring(void);
/* In a fork's child, forgets that the parent has rung. */
void ct_daemon_forget(void);

#endif
