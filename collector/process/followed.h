/* Waits for the end of processes by their descriptors. Loop thread. */
#ifndef CT_FOLLOWED_H
#define CT_FOLLOWED_H

#include "identity.h"

#include <uv.h>

struct ct_follower;

struct ct_followed {
    uv_loop_t *loop;
    void (*on_end)(void *data);
    void *data;
    struct ct_follower *first;
};

/* Calls `on_end` when the loop detects the end of a process. Its `dead` is set by then. */
void ct_followed_init(struct ct_followed *followed, uv_loop_t *loop, void (*on_end)(void *data), void *data);
/* Starts waiting for its end. If the loop cannot, the worker checks instead. */
void ct_followed_add(struct ct_followed *followed, struct ct_process *process);
/* Call before the process is closed. */
void ct_followed_remove(struct ct_followed *followed, struct ct_process *process);
/* Marks ended processes at once, without waiting for the loop's events. */
void ct_followed_look(struct ct_followed *followed);
/* Returns whether this image is forged. It is if a followed image claims to be the same, and the process has
 * mapped that image's file but not this one's. */
bool ct_followed_disproves(const struct ct_followed *followed, const struct ct_process *process);
/* Returns whether a process has reached its limit of segments. Applies only to users of the system's session.
 */
bool ct_followed_has_many(const struct ct_followed *followed, const struct ct_process *process);
/* Call when a process has executed another program. Ends its earlier images after checking that they are
 * unmapped. */
void ct_followed_end_earlier_execs(struct ct_followed *followed, const struct ct_process *process);

#endif
