/* A thread that does one piece of work at a time, in parallel with its owner. */
#ifndef CT_ERRAND_H
#define CT_ERRAND_H

#include <stdbool.h>

struct ct_errand;

/* Creates the thread, which runs `work` once for each ct_errand_start(). `top -H` shows `name`, at most 15
 * characters. Returns NULL if there is no thread or memory. */
struct ct_errand *ct_errand_create(const char *name, int (*work)(void *data), void *data);
/* Starts a piece of work. The previous one must have been waited for. The work sees everything that the owner
 * wrote before. */
void ct_errand_start(struct ct_errand *errand);
/* Check whether the work is done, and wait for its result. Once either reports the end, the owner sees
 * everything that the work wrote. */
bool ct_errand_is_done(const struct ct_errand *errand);
int ct_errand_wait(struct ct_errand *errand);
/* Returns whether the caller runs on the errand's thread. `errand` may be NULL. */
bool ct_errand_is_own(const struct ct_errand *errand);
/* Waits for the work first. `errand` may be NULL. */
void ct_errand_destroy(struct ct_errand *errand);

#endif
