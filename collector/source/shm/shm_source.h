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

/* Returns what becomes of a process of the trace when the source ends. `shm` has in `processes` what
 * ct_shm_finish() returned. */
enum ct_going ct_shm_going_at_end(const struct ct_running *running, const void *shm);
/* Returns whether a process of that list runs on, as the same program. */
bool ct_shm_runs_on(const struct ct_shm_process *process);

#endif
