/* Finds the session's daemon through its control segment, and rings the daemon's doorbell. */
#ifndef CT_FIND_DAEMON_H
#define CT_FIND_DAEMON_H

#include "compiler.h"
#include "control.h"

#include <stdbool.h>
#include <stdint.h>

extern CT_LOCAL struct ct_control *ct_control; /* the session's control segment; NULL before the process has
                                                * its first segment */

/* Why a process cannot record for one daemon, if there is such a daemon. */
struct ct_obstacle {
    int error;    /* an errno, or 0: nothing is in the way */
    uint32_t uid; /* the user ID in the name of the daemon's control segment */
    bool is_user; /* the process's user may not open or trust the daemon's files */
};
enum { CT_OBSTACLE_OWN, CT_OBSTACLE_ROOT, CT_OBSTACLES };
/* Fields of a control segment that are read only once. */
struct ct_requested {
    uint64_t ring_bytes;
    uint64_t gpu_until_ns; /* of struct ct_control */
    bool clock_is_counter, system;
    struct ct_obstacle obstacle[CT_OBSTACLES]; /* of the user's own daemon, and of root's */
};
/* The parts of a session's file paths. */
struct ct_session {
    const char *dir, *name; /* from the settings */
    uint32_t uid;
    bool is_shared; /* files that seem to belong to this user may belong to others */
};
/* Reads the session from the settings (setting.h). Returns false if its name or directory is not valid. */
bool ct_daemon_session(struct ct_session *session);
/* Maps the control segment of the session's daemon. The user's own daemon takes precedence over the system
 * daemon. Returns NULL if there is neither. Sets `obstacle` for each daemon that cannot be used. */
struct ct_control *ct_daemon_find(const struct ct_session *session, struct ct_requested *requested);
/* Makes `control` the current control segment. Returns false if the control segment cannot be moved to its
 * address. */
bool ct_daemon_take(struct ct_control *control, const struct ct_requested *requested);
void ct_daemon_drop(struct ct_control *control);
/* Wakes the collector if it is asleep. Returns true if it was asleep. */
bool ct_daemon_ring(void);
/* In the child of a fork, forgets that the parent has rung the doorbell. */
void ct_daemon_forget(void);

#endif
