/* A thread that does one piece of work at a time, in parallel with its owner. */
#ifndef CT_BACKGROUND_TASK_H
#define CT_BACKGROUND_TASK_H

#include <stdbool.h>

struct ct_task;

/* Creates the thread, which runs `work` once for each ct_task_start(). `top -H` shows `name`, at most 15
 * characters. Returns NULL if there is no thread or memory. */
struct ct_task *ct_task_create(const char *name, int (*work)(void *data), void *data);
/* Starts a piece of work. The previous one must have been waited for. The work sees everything that the owner
 * wrote before. */
void ct_task_start(struct ct_task *task);
/* Check whether the work is done, and wait for its result. Once either reports the end, the owner sees
 * everything that the work wrote. */
bool ct_task_is_done(const struct ct_task *task);
int ct_task_wait(struct ct_task *task);
/* Returns whether the caller runs on the task's thread. `task` may be NULL. */
bool ct_task_is_own(const struct ct_task *task);
/* Waits for the work first. `task` may be NULL. */
void ct_task_destroy(struct ct_task *task);

#endif
