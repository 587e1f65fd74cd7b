/* The processes whose end the loop waits for, by their descriptors. Loop thread. */
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

/* `on_end` is called when the loop finds that one has ended, which its `dead` says by then. */
void ct_followed_init(struct ct_followed *followed, uv_loop_t *loop, void (*on_end)(void *data), void *data);
/* Waits for its end from here on; where the loop cannot, the worker looks. */
void ct_followed_add(struct ct_followed *followed, struct ct_process *process);
/* Before the process is closed. */
void ct_followed_remove(struct ct_followed *followed, struct ct_process *process);
/* Notes at once who has ended, whatever the loop has heard. */
void ct_followed_look(struct ct_followed *followed);
/* Returns whether an image that is followed shows that this one, which claims to be the same, is made up: the
 * process has mapped the file of the followed image, and not the file of this one. */
bool ct_followed_disproves(const struct ct_followed *followed, const struct ct_process *process);
/* Returns whether a process of a user of the system's session has as many segments as one may have. */
bool ct_followed_has_many(const struct ct_followed *followed, const struct ct_process *process);
/* A process that has become another program: the images before it are at their end, if it is so. */
void ct_followed_end_earlier_images(struct ct_followed *followed, const struct ct_process *process);

#endif
