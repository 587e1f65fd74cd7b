/* Waits on pidfds for processes to exit. Used only on the loop thread. */
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

/* When the loop detects that a process has exited, sets the process's `dead` and then calls `on_end`. */
void ct_followed_init(struct ct_followed *followed, uv_loop_t *loop, void (*on_end)(void *data), void *data);
/* Starts waiting for a process to exit. If the loop cannot wait for it, the worker checks in /proc whether it
 * has exited. */
void ct_followed_add(struct ct_followed *followed, struct ct_process *process);
/* Call before the process is closed. */
void ct_followed_remove(struct ct_followed *followed, struct ct_process *process);
/* Immediately marks processes that have exited, without waiting for the loop's events. */
void ct_followed_look(struct ct_followed *followed);
/* Returns whether this image is forged: a followed image claims to be the same one, and the process has only
 * the followed image's file mapped. */
bool ct_followed_disproves(const struct ct_followed *followed, const struct ct_process *process);
/* Returns whether a process has reached the limit on segments per process. Only the system session has this
 * limit. */
bool ct_followed_has_many(const struct ct_followed *followed, const struct ct_process *process);
/* Call when a process has executed another program. Ends the process's earlier images after checking that
 * they are unmapped. */
void ct_followed_end_earlier_execs(struct ct_followed *followed, const struct ct_process *process);

#endif
