#include "worker_thread.h"

#include "checkpoint.h"
#include "demangle.h"
#include "store.h"

#include <stdlib.h>

struct ct_worker {
    uv_thread_t thread;
    uv_mutex_t mutex;
    uv_cond_t cond;
    uv_async_t done;
    ct_worker_on_batch *on_batch;
    void *data;

    /* Protected by the mutex. */
    bool wanted;
    struct ct_request request;
    struct ct_report report; /* results not yet passed to the loop */
    bool reported;           /* `report` is set, and the loop has not read it yet */
    bool busy, stop;

    struct ct_collection *collection; /* owned by the thread */
};

/* Creates a checkpointer. If the trace uses small files, limits the log to a quarter of a file's share. */
static struct ct_checkpointer *create_checkpointer(const struct ct_collection *collection)
{
    const uint64_t share = ct_bounds_share(&collection->bounds);
    const uint64_t pages = share / 4 / CT_STORE_PAGE_BYTES;
    return ct_checkpointer_create(collection->ledger.store, share && pages < CT_CHECKPOINT_PAGES
                                                                ? (uint32_t)pages
                                                                : CT_CHECKPOINT_PAGES);
}

static void go_on(struct ct_collection *collection, struct ct_report *report)
{
    /* Destroy the checkpointer first, because closing its file drops all locks that this process has on the
     * file. */
    ct_checkpointer_destroy(collection->checkpointer);
    ct_batch_go_on(collection, report);
    collection->checkpointer = create_checkpointer(collection);
    ct_batch_describe(collection, report);
    report->has_gone_on = true;
}

/* ---- the thread ---- */

static void thread_main(void *data)
{
    struct ct_worker *worker = data;
    for (struct ct_source *s = worker->collection->sources; s; s = s->next) {
        if (s->class->start)
            s->class->start(s);
    }
    uv_mutex_lock(&worker->mutex);
    for (;;) {
        /* While a batch is being committed, continue without waiting for a request. */
        while (!worker->wanted && !worker->stop && !worker->collection->is_committing)
            uv_cond_wait(&worker->cond, &worker->mutex);
        if (worker->stop && !worker->collection->is_committing)
            break;
        struct ct_request request = worker->request;
        request.alone |= worker->stop;
        worker->request = (struct ct_request){ 0 };
        worker->wanted = false;
        worker->busy = true;
        struct ct_report report = { .rows_total = worker->report.rows_total,
                                    .batches_total = worker->report.batches_total,
                                    .expired_total = worker->report.expired_total };
        uv_mutex_unlock(&worker->mutex);

        const uint64_t told = report.batches_total;
        const bool is_done = ct_batch_make(worker->collection, &request, &report);
        if (is_done && report.go_on)
            go_on(worker->collection, &report);

        uv_mutex_lock(&worker->mutex);
        worker->busy = !is_done;
        if (report.batches_total == told)
            continue; /* the batch is still being committed, and the next batch's report covers both */
        if (worker->reported)
            ct_report_add(&report, &worker->report);
        worker->report = report;
        worker->reported = true;
        uv_async_send(&worker->done);
    }
    uv_mutex_unlock(&worker->mutex);
}

static void on_done(uv_async_t *async)
{
    struct ct_worker *worker = async->data;
    uv_mutex_lock(&worker->mutex);
    const struct ct_report report = worker->report;
    const bool reported = worker->reported;
    worker->reported = false;
    uv_mutex_unlock(&worker->mutex);
    /* If one call has handled two reports, the loop is woken once more with nothing left to report. */
    if (reported)
        worker->on_batch(&report, worker->data);
}

int ct_worker_create(uv_loop_t *loop, struct ct_collection *collection, ct_worker_on_batch *on_batch,
                     void *data, struct ct_worker **result)
{
    struct ct_worker *worker = calloc(1, sizeof(*worker));
    if (!worker)
        return UV_ENOMEM;
    worker->collection = collection;
    collection->checkpointer = create_checkpointer(collection);
    worker->on_batch = on_batch;
    worker->data = data;
    uv_mutex_init(&worker->mutex);
    uv_cond_init(&worker->cond);
    int error = uv_async_init(loop, &worker->done, on_done);
    worker->done.data = worker;
    const uv_thread_options_t options = { .flags = UV_THREAD_HAS_STACK_SIZE,
                                          .stack_size = CT_DEMANGLE_STACK_BYTES };
    if (!error)
        error = uv_thread_create_ex(&worker->thread, &options, thread_main, worker);
    if (error)
        return error;
    *result = worker;
    return 0;
}

static void free_worker(uv_handle_t *handle)
{
    struct ct_worker *worker = handle->data;
    uv_mutex_destroy(&worker->mutex);
    uv_cond_destroy(&worker->cond);
    free(worker);
}

void ct_worker_destroy(struct ct_worker *worker)
{
    uv_mutex_lock(&worker->mutex);
    worker->stop = true;
    uv_cond_signal(&worker->cond);
    uv_mutex_unlock(&worker->mutex);
    uv_thread_join(&worker->thread);
    ct_checkpointer_destroy(worker->collection->checkpointer);
    uv_close((uv_handle_t *)&worker->done, free_worker);
}

void ct_worker_request(struct ct_worker *worker, struct ct_request request)
{
    uv_mutex_lock(&worker->mutex);
    worker->wanted = true;
    worker->request.snapshot_open |= request.snapshot_open;
    worker->request.detach |= request.detach;
    worker->request.let_go |= request.let_go;
    worker->request.next_file |= request.next_file;
    if (request.flush_ns > worker->request.flush_ns)
        worker->request.flush_ns = request.flush_ns;
    uv_cond_signal(&worker->cond);
    uv_mutex_unlock(&worker->mutex);
}

bool ct_worker_busy(struct ct_worker *worker)
{
    uv_mutex_lock(&worker->mutex);
    const bool busy = worker->busy || worker->wanted;
    uv_mutex_unlock(&worker->mutex);
    return busy;
}
