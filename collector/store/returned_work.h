/* The newest work that CUPTI has returned for each stream of a process. Later calls may have work that CUPTI
 * has not returned yet (view gpu_pending). Each batch writes only the streams that had work. */
#ifndef CT_RETURNED_WORK_H
#define CT_RETURNED_WORK_H

struct ct_returned_stream;
struct ct_store;

/* Notes that CUPTI has returned work with the given correlation and end time. Work of one stream may be noted
 * in any order. */
void ct_returned_note(struct ct_store *store, const struct ct_returned_stream *work);
/* Defers the statements for this batch. Call before ct_deferred_hand_over(). */
void ct_returned_hand_over(struct ct_store *store);
/* Call when a batch is rolled back. */
void ct_returned_clear(struct ct_store *store);

#endif
