/* A thread that does one piece of work at a time, in parallel with its owner. */
#ifndef CT_BACKGROUND_TASK_H
#define CT_BACKGROUND_TASK_H

#include <stdbool.h>

struct ct_task;

/* Creates the thread, which runs `work` once for each ct_task_start(). `name`, at most 15 characters long, is
 * the thread's name in `top -H`. Returns NULL if out of memory, or if no thread can be created. */
struct ct_task *ct_task_create(const char *name, int (*work)(void *data), void *data);
/* Starts a piece of work. The owner must have waited for the previous piece of work to finish. The thread
 * sees everything that the owner wrote before this call. */
void ct_task_start(struct ct_task *task);
/* ct_task_is_done() checks whether the work is done, and ct_task_wait() waits for its result. Once either
 * function has reported completion, the owner sees everything that the work wrote. */
bool ct_task_is_done(const struct ct_task *task);
int ct_task_wait(struct ct_task *task);
/* Returns whether the calling thread is the task's thread. `task` may be NULL. */
bool ct_task_is_own(const struct ct_task *task);
/* Waits for the work to finish, then ends the thread. `task` may be NULL. */
void ct_task_destroy(struct ct_task *task);

#endif
