/* The worker: a thread that makes batches when the loop asks for one. It owns the database, the timeline and
 * every process between ct_worker_adopt() and its return in `gone`. */
#ifndef CT_WORKER_H
#define CT_WORKER_H

#include "batch.h"

#include <uv.h>

struct ct_worker;
/* The report is the loop thread's to read during the call. */
typedef void ct_worker_on_batch(const struct ct_report *report, void *data);

/* Starts the thread. `dir`, of the session's segments, and `store` stays the caller's and must outlive the
 * worker. 0 or a libuv error. */
int ct_worker_create(uv_loop_t *loop, struct ct_store *store, const char *dir, struct ct_control *control,
                     const struct ct_bounds *bounds, ct_worker_on_batch *on_batch, void *data,
                     struct ct_worker **worker);
/* Joins the thread; every process comes back in the list, to be closed by the caller. */
struct ct_process *ct_worker_destroy(struct ct_worker *worker);

/* Hands a process over. */
void ct_worker_adopt(struct ct_worker *worker, struct ct_process *process);
/* All segments that were counted up to `segments`, and all that were there at looked_ns, have been
 * handed over. */
void ct_worker_adopted(struct ct_worker *worker, uint32_t segments, uint64_t looked_ns);
/* Asks for a batch; while one is made, for another behind it. */
void ct_worker_request(struct ct_worker *worker, struct ct_request request);
bool ct_worker_busy(struct ct_worker *worker);

#endif
