/* A thread that does one piece of work at a time for its owner, beside what the owner does. */
#ifndef CT_ERRAND_H
#define CT_ERRAND_H

#include <stdbool.h>

struct ct_errand;

/* `work` runs on the thread, once for each start; `name`, 15 letters at most, is what `top -H` shows. NULL
 * without a thread or memory. */
struct ct_errand *ct_errand_create(const char *name, int (*work)(void *data), void *data);
/* The last piece must have been waited for. What the owner wrote before is there for the work to read, */
void ct_errand_start(struct ct_errand *errand);
/* and what the work wrote, behind these: whether it is done; what it returned, once it is. */
bool ct_errand_is_done(const struct ct_errand *errand);
int ct_errand_wait(struct ct_errand *errand);
/* Returns whether the caller is the work. NULL is fine. */
bool ct_errand_is_own(const struct ct_errand *errand);
/* Waits for it first. NULL is fine. */
void ct_errand_destroy(struct ct_errand *errand);

#endif
