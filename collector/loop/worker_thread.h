/* The worker: a thread that makes batches at the loop's request. The worker owns the ledger, and the part of
 * each source that batches use. */
#ifndef CT_WORKER_H
#define CT_WORKER_H

#include "batch.h"

#include <uv.h>

struct ct_worker;
/* Called on the loop thread. The report is valid only during the call. */
typedef void ct_worker_on_batch(const struct ct_report *report, void *data);

/* Starts the thread with the ledger and the sources of `collection`, which must outlive it. Returns 0 or a
 * libuv error. */
int ct_worker_create(uv_loop_t *loop, struct ct_collection *collection, ct_worker_on_batch *on_batch,
                     void *data, struct ct_worker **worker);
/* Joins the thread and returns the collection to the caller. */
void ct_worker_destroy(struct ct_worker *worker);

/* Requests a batch. If a batch is being made, another one follows it. */
void ct_worker_request(struct ct_worker *worker, struct ct_request request);
bool ct_worker_busy(struct ct_worker *worker);

#endif
