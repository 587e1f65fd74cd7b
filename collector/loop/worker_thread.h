/* The worker: a thread that makes batches when the loop asks for one. It owns the ledger, and the sources'
 * side of the batches. */
#ifndef CT_WORKER_H
#define CT_WORKER_H

#include "batch.h"

#include <uv.h>

struct ct_worker;
/* The report is the loop thread's to read during the call. */
typedef void ct_worker_on_batch(const struct ct_report *report, void *data);

/* Starts the thread, with the ledger and the sources of `collection`, which must outlive it. 0 or a libuv
 * error. */
int ct_worker_create(uv_loop_t *loop, struct ct_collection *collection, ct_worker_on_batch *on_batch,
                     void *data, struct ct_worker **worker);
/* Joins the thread: the collection is the caller's again. */
void ct_worker_destroy(struct ct_worker *worker);

/* Asks for a batch; while one is made, for another behind it. */
void ct_worker_request(struct ct_worker *worker, struct ct_request request);
bool ct_worker_busy(struct ct_worker *worker);

#endif
