#include "worker.h"

#include "log.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ROWS_MAX = 250000, /* a batch's: about a tenth of a second */
    META_INTERVAL_NS = 1000000000,
    WORKER_STACK_BYTES = 32 * 1024 * 1024, /* untouched but by the demangler's recursion, see store.c */
};

/* What the loop asks for. */
struct request {
    bool wanted, snapshot_open, detach;
    uint64_t flush_ns;
};

struct ct_worker {
    uv_thread_t thread;
    uv_mutex_t mutex;
    uv_cond_t cond;
    uv_async_t done;
    ct_worker_on_batch *on_batch;
    void *data;

    /* Under the mutex. */
    struct request request;
    struct ct_process *incoming;
    struct ct_report report;
    bool busy, stop;

    /* The thread's. */
    struct ct_store *store;
    struct ct_control *control;
    struct ct_timeline timeline;
    struct ct_merge merge;
    struct ct_process *processes;
    uint64_t meta_written_ns;
};

/* ---- a batch ---- */

#define EACH_PROCESS(p) for (struct ct_process *p = worker->processes; p; p = p->next)

static int write_meta(struct ct_worker *worker, const struct ct_batch *batch)
{
    if (batch->now_ns - worker->meta_written_ns < META_INTERVAL_NS)
        return 0;
    worker->meta_written_ns = batch->now_ns;
    struct timespec real;
    clock_gettime(CLOCK_REALTIME, &real);
    const int64_t now = (int64_t)ct_monotonic_ns();
    return ct_store_set_meta(worker->store, "realtime_offset_ns",
                             (int64_t)real.tv_sec * 1000000000 + real.tv_nsec - now);
}

/* All between begin and commit; 0 or -1. */
static int fill_batch(struct ct_worker *worker, struct ct_batch *batch, struct ct_report *report)
{
    EACH_PROCESS(p)
    {
        if (ct_process_sync(p, batch) != 0)
            return -1;
    }
    EACH_PROCESS(p) ct_process_watermark(p, batch);
    ct_merge_begin(&worker->merge, batch->until_ns);
    EACH_PROCESS(p)
    {
        if (ct_process_add(p, &worker->merge) != 0)
            return -1;
    }
    if (worker->merge.count > 0 && ct_store_calls(worker->store, &worker->merge, ROWS_MAX, &report->rows) != 0)
        return -1;
    report->more = worker->merge.count > 0;
    report->flushed_ns = report->more ? 0 : batch->until_ns;
    EACH_PROCESS(p)
    {
        if (ct_process_save(p, batch) != 0)
            return -1;
        if (p->final && !ct_process_has_backlog(p) && ct_process_end(p, batch) != 0)
            return -1;
    }
    return report->rows > 0 ? write_meta(worker, batch) : 0;
}

/* Takes the processes out that are at their end, or broke a rule. */
static void sort_out(struct ct_worker *worker, struct ct_report *report)
{
    for (struct ct_process **link = &worker->processes; *link;) {
        struct ct_process *p = *link;
        if (p->broken)
            ct_process_detach(p);
        if (p->broken || (p->final && !ct_process_has_backlog(p))) {
            *link = p->next;
            p->next = report->gone;
            report->gone = p;
        } else {
            link = &p->next;
        }
    }
}

static void make_batch(struct ct_worker *worker, const struct request *request, struct ct_report *report)
{
    atomic_store_explicit(&worker->control->sleeping, 0, memory_order_relaxed);
    if (request->detach)
        EACH_PROCESS(p) ct_process_detach(p);
    if (request->flush_ns)
        /* The watermark lies a slack in the past, and has to reach the moment that was asked for. */
        nanosleep(&(struct timespec){ .tv_nsec = 2 * CT_PUBLISH_SLACK_NS }, NULL);
    ct_timeline_anchor(&worker->timeline);
    struct ct_batch batch = {
        .store = worker->store,
        .timeline = &worker->timeline,
        .now_ns = ct_monotonic_ns(),
        .snapshot_open = request->snapshot_open || request->flush_ns,
    };
    batch.until_ns = batch.now_ns - CT_PUBLISH_SLACK_NS;

    if (ct_store_begin(worker->store) != 0 || fill_batch(worker, &batch, report) != 0 ||
        ct_store_commit(worker->store) != 0) {
        memcpy(report->error, ct_store_error(worker->store), sizeof(report->error));
        ct_store_rollback(worker->store);
        EACH_PROCESS(p) ct_process_revert(p);
        report->rows = 0;
        report->flushed_ns = 0;
    } else {
        EACH_PROCESS(p) ct_process_publish(p, report->rows == 0);
        sort_out(worker, report);
    }
    report->processes = report->lanes = 0;
    EACH_PROCESS(p)
    {
        report->backlog |= ct_process_has_backlog(p);
        report->processes++;
        report->lanes += p->lane_count;
    }
    report->rows_total += report->rows;
    report->late_total = ct_store_late_rows(worker->store);
    report->batches_total++;
    /* From here on a lane that passes its mark rings. */
    atomic_store_explicit(&worker->control->sleeping, 1, memory_order_seq_cst);
}

/* ---- the thread ---- */

static void adopt_incoming(struct ct_worker *worker)
{
    while (worker->incoming) {
        struct ct_process *p = worker->incoming;
        worker->incoming = p->next;
        p->next = worker->processes;
        worker->processes = p;
    }
}

/* A report that the loop has not taken yet is merged into the new one. */
static void hand_over(struct ct_worker *worker, struct ct_report *report)
{
    const struct ct_report *old = &worker->report;
    report->rows += old->rows;
    if (old->flushed_ns > report->flushed_ns)
        report->flushed_ns = old->flushed_ns;
    struct ct_process **end = &report->gone;
    while (*end)
        end = &(*end)->next;
    *end = old->gone;
    worker->report = *report;
}

static void thread_main(void *data)
{
    struct ct_worker *worker = data;
    ct_timeline_begin(&worker->timeline, worker->control);
    uv_mutex_lock(&worker->mutex);
    for (;;) {
        while (!worker->request.wanted && !worker->stop)
            uv_cond_wait(&worker->cond, &worker->mutex);
        if (worker->stop)
            break;
        const struct request request = worker->request;
        worker->request = (struct request){ 0 };
        worker->busy = true;
        adopt_incoming(worker);
        struct ct_report report = { .rows_total = worker->report.rows_total,
                                    .batches_total = worker->report.batches_total };
        uv_mutex_unlock(&worker->mutex);

        make_batch(worker, &request, &report);

        uv_mutex_lock(&worker->mutex);
        hand_over(worker, &report);
        worker->busy = false;
        uv_async_send(&worker->done);
    }
    uv_mutex_unlock(&worker->mutex);
}

static void on_done(uv_async_t *async)
{
    struct ct_worker *worker = async->data;
    uv_mutex_lock(&worker->mutex);
    const struct ct_report report = worker->report;
    worker->report.rows = 0;
    worker->report.flushed_ns = 0;
    worker->report.gone = NULL;
    uv_mutex_unlock(&worker->mutex);
    worker->on_batch(&report, worker->data);
}

int ct_worker_create(uv_loop_t *loop, struct ct_store *store, struct ct_control *control,
                     ct_worker_on_batch *on_batch, void *data, struct ct_worker **result)
{
    struct ct_worker *worker = calloc(1, sizeof(*worker));
    if (!worker)
        return UV_ENOMEM;
    worker->store = store;
    worker->control = control;
    worker->on_batch = on_batch;
    worker->data = data;
    uv_mutex_init(&worker->mutex);
    uv_cond_init(&worker->cond);
    uv_async_init(loop, &worker->done, on_done);
    worker->done.data = worker;
    const uv_thread_options_t options = { .flags = UV_THREAD_HAS_STACK_SIZE, .stack_size = WORKER_STACK_BYTES };
    const int error = uv_thread_create_ex(&worker->thread, &options, thread_main, worker);
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

struct ct_process *ct_worker_destroy(struct ct_worker *worker)
{
    uv_mutex_lock(&worker->mutex);
    worker->stop = true;
    uv_cond_signal(&worker->cond);
    uv_mutex_unlock(&worker->mutex);
    uv_thread_join(&worker->thread);
    adopt_incoming(worker);
    struct ct_process *all = worker->processes;
    ct_merge_finish(&worker->merge);
    uv_close((uv_handle_t *)&worker->done, free_worker);
    return all;
}

static void ask(struct ct_worker *worker, bool snapshot_open, bool detach, uint64_t flush_ns)
{
    uv_mutex_lock(&worker->mutex);
    worker->request.wanted = true;
    worker->request.snapshot_open |= snapshot_open;
    worker->request.detach |= detach;
    if (flush_ns > worker->request.flush_ns)
        worker->request.flush_ns = flush_ns;
    uv_cond_signal(&worker->cond);
    uv_mutex_unlock(&worker->mutex);
}

void ct_worker_adopt(struct ct_worker *worker, struct ct_process *process)
{
    uv_mutex_lock(&worker->mutex);
    process->next = worker->incoming;
    worker->incoming = process;
    uv_mutex_unlock(&worker->mutex);
}

void ct_worker_request(struct ct_worker *worker, bool snapshot_open) { ask(worker, snapshot_open, false, 0); }
void ct_worker_request_flush(struct ct_worker *worker, uint64_t flush_ns) { ask(worker, true, false, flush_ns); }
void ct_worker_detach_all(struct ct_worker *worker) { ask(worker, false, true, 0); }

bool ct_worker_busy(struct ct_worker *worker)
{
    uv_mutex_lock(&worker->mutex);
    const bool busy = worker->busy || worker->request.wanted;
    uv_mutex_unlock(&worker->mutex);
    return busy;
}
