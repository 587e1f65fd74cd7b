/* The session's shared memory as a source of calls. */
#ifndef CT_SHM_SOURCE_H
#define CT_SHM_SOURCE_H

#include "shm_process.h"

/* The caller keeps ownership of `dir`, the folder of the session's segments, and of `control`. */
void ct_shm_init(struct ct_shm *shm, const char *dir, struct ct_control *control);
/* Call after the thread that makes batches has ended. Returns all processes, including those that are being
 * handed over in either direction. The caller must close them. */
struct ct_shm_process *ct_shm_finish(struct ct_shm *shm);

/* For the loop thread. Hands over a process. */
void ct_shm_adopt(struct ct_shm *shm, struct ct_shm_process *process);
/* Reports that all segments counted up to `segments`, and all that existed at looked_ns, have been handed
 * over. */
void ct_shm_adopted(struct ct_shm *shm, uint32_t segments, uint64_t looked_ns);
/* Returns the processes that have ended or broken a rule. The caller must close them. */
struct ct_shm_process *ct_shm_take_gone(struct ct_shm *shm);

/* Returns the state that the trace records for a process when the source ends. `shm->processes` must be the
 * list returned by ct_shm_finish(). */
enum ct_going ct_shm_going_at_end(const struct ct_running *running, const void *shm);
/* Returns whether a process of `shm->processes` is still running the same program. */
bool ct_shm_runs_on(const struct ct_shm_process *process);

#endif
