/* The session's shared memory as a source of calls. */
#ifndef CT_SHM_SOURCE_H
#define CT_SHM_SOURCE_H

#include "shm_process.h"

/* `dir`, of the session's segments, and `control` stay the caller's. */
void ct_shm_init(struct ct_shm *shm, const char *dir, struct ct_control *control);
/* The thread of batches has ended: what is there, with what was to be handed over either way, to be closed by
 * the caller. */
struct ct_shm_process *ct_shm_finish(struct ct_shm *shm);

/* For the loop thread: hands a process over; */
void ct_shm_adopt(struct ct_shm *shm, struct ct_shm_process *process);
/* says that all segments that were counted up to `segments`, and all that were there at looked_ns, are; */
void ct_shm_adopted(struct ct_shm *shm, uint32_t segments, uint64_t looked_ns);
/* takes back those that are at their end, or broke a rule: a list to be closed. */
struct ct_shm_process *ct_shm_take_gone(struct ct_shm *shm);

/* Returns whether a process of the trace runs. One of the list `processes` is asked by its descriptor, since
 * its pid may be of another namespace; otherwise process `pid` must be the one that started then. */
bool ct_shm_alive(const struct ct_running *running, const void *processes);

#endif
