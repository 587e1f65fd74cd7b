/* Does a batch's work for one process. Functions that return int return 0, or -1 for the store's error. */
#ifndef CT_SHM_DRAIN_H
#define CT_SHM_DRAIN_H

#include "shm_process.h"

/* Reads the moment up to which a probe has published everything. The caller reads the number of segments,
 * lanes and positions afterwards: a record that they miss returned later. */
void ct_shm_read_complete(struct ct_shm_process *process);
/* Makes the rows of the process, and finds lanes that are new. */
int ct_shm_sync(struct ct_shm_process *process, struct ct_batch *batch);
/* Takes the lanes' positions, and lowers batch->until_ns to before any row that may still come. */
void ct_shm_watermark(struct ct_shm_process *process, struct ct_batch *batch);
/* Slots that are published and not stored, behind ct_shm_watermark(). */
uint64_t ct_shm_slots(const struct ct_shm_process *process);
/* Leaves all but `share` of `of` parts of them for the next batch. */
void ct_shm_hold_back(struct ct_shm_process *process, uint64_t share, uint64_t of);
/* Adds the lanes to the merge. */
int ct_shm_add(struct ct_shm_process *process, struct ct_ledger *ledger);
/* Saves positions, sums, losses and open calls, and reports how full the fullest ring was. */
int ct_shm_save(struct ct_shm_process *process, struct ct_batch *batch);
/* Saves how the process went. */
int ct_shm_end(struct ct_shm_process *process, struct ct_ledger *ledger);
/* After commit: gives the producers their room back. `selections` are the session's wishes, which the hook is
 * to follow. */
void ct_shm_publish(struct ct_shm_process *process, const struct ct_batch *batch, uint32_t selections);
/* After rollback: positions as they were. */
void ct_shm_revert(struct ct_shm_process *process);
/* True while published calls wait to be stored. */
bool ct_shm_has_backlog(const struct ct_shm_process *process);
/* Calls published and not stored. */
uint64_t ct_shm_waiting(struct ct_shm_process *process);
/* Tells the hook to let go. */
void ct_shm_detach(struct ct_shm_process *process);

#endif
