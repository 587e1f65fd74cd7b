/* Handles one process's part of a batch. Functions that return int return 0, or -1 if the store has an
 * error. */
#ifndef CT_SHM_DRAIN_H
#define CT_SHM_DRAIN_H

#include "shm_process.h"

/* Reads a probe's watermark from its segment. The probe has published every call that returned before this
 * time. The caller must read the number of segments, the lanes and the positions afterwards. Any call missing
 * from them then returned after the watermark. */
void ct_shm_read_complete(struct ct_shm_process *process);
/* Uses the watermark read by ct_shm_read_complete() if all segments are known, as the number of segments
 * shows. (A probe counts the segments of all processes that it has found before it publishes a watermark.) An
 * unknown segment may have calls older than its file, so in that case the earlier watermark is kept for a
 * limited time. */
void ct_shm_use_complete(struct ct_shm_process *process, uint64_t now_ns, bool all_are_known);
/* Creates the process's rows, and finds new lanes. */
int ct_shm_sync(struct ct_shm_process *process, struct ct_batch *batch);
/* Reads the lanes' positions, and lowers batch->until_ns to a time before any row that may still arrive. */
void ct_shm_watermark(struct ct_shm_process *process, struct ct_batch *batch);
/* Returns the number of slots that are published but not stored. Call after ct_shm_watermark(). */
uint64_t ct_shm_slots(const struct ct_shm_process *process);
/* Limits this batch to the fraction `share` / `of` of the waiting slots, and leaves the rest for the next
 * batch. */
void ct_shm_hold_back(struct ct_shm_process *process, uint64_t share, uint64_t of);
/* Adds the lanes to the merge. */
int ct_shm_add(struct ct_shm_process *process, struct ct_ledger *ledger);
/* Saves positions, sums, losses and open calls. Reports how full the fullest ring is. */
int ct_shm_save(struct ct_shm_process *process, struct ct_batch *batch);
/* Saves how and when the process ended. */
int ct_shm_end(struct ct_shm_process *process, struct ct_ledger *ledger);
/* Call after a commit. Returns the space of stored records to the producers. `selections` identifies the
 * session's current selection, which the hook must follow. */
void ct_shm_publish(struct ct_shm_process *process, const struct ct_batch *batch, uint32_t selections);
/* Call after a rollback. Restores the positions. */
void ct_shm_revert(struct ct_shm_process *process);
/* Returns whether published calls are waiting to be stored. */
bool ct_shm_has_backlog(const struct ct_shm_process *process);
/* Returns the number of calls that are published but not stored. */
uint64_t ct_shm_waiting(struct ct_shm_process *process);
/* Makes the hook leave the segment. */
void ct_shm_detach(struct ct_shm_process *process);

#endif
