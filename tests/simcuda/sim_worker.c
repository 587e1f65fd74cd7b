/* sim_worker.c: the driver's thread. The thread runs host callbacks, and ops that were submitted after a
 * callback and must not overtake it. A single queue serves all streams in the order of submission, so an op
 * depends only on ops ahead of it in the queue. The real driver does not define an order for callbacks in
 * independent streams, and does not promise that they overlap. */
#include "sim_graph.h"

#include <signal.h>
#include <stdlib.h>

struct kept {
    struct kept *next;
    CUstream stream;
    struct op op;
};

static struct kept *first, **last = &first;
static bool running;

/* Updates the counts of queued ops in the objects that an op uses. `change` is 1 when the op is queued, and
 * -1 after it has run. */
static void count(CUstream stream, const struct op *op, int change)
{
    stream->kept += (unsigned)change;
    const CUevent event = op->kind == OP_RECORD ? event_of(op->event.event) : NULL;
    if (event && event->handle.generation == op->event.generation)
        event->kept += (unsigned)change;
    if (op->kind == OP_REPLAY && change > 0)
        exec_hold(op->exec);
}

static void *work(void *unused)
{
    (void)unused;
    driver_lock();
    for (;;) {
        while (!first)
            driver_wait();
        struct kept *kept = first;
        op_run_late(&kept->op, kept->stream);
        first = kept->next;
        if (!first)
            last = &first;
        count(kept->stream, &kept->op, -1);
        if (kept->op.kind == OP_REPLAY)
            exec_drop(kept->op.exec);
        stream_op_done(kept->stream);
        free(kept);
        driver_broadcast();
    }
    return NULL;
}

/* Starts the driver's thread, which must not receive the program's signals. */
static CUresult start(void)
{
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&thread, NULL, work, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_setname_np(thread, "simcuda");
    pthread_detach(thread);
    running = true;
    return CUDA_SUCCESS;
}

CUresult worker_keep(CUstream stream, const struct op *op)
{
    if (!running) {
        const CUresult result = start();
        if (result != CUDA_SUCCESS)
            return result;
    }
    struct kept *kept = malloc(sizeof *kept);
    if (!kept)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *kept = (struct kept){ .stream = stream, .op = *op };
    *last = kept;
    last = &kept->next;
    count(stream, op, 1);
    driver_broadcast();
    return CUDA_SUCCESS;
}

/* A forked child does not have this thread, and the remaining ops belong to the parent. */
void worker_after_fork(void)
{
    running = false;
    while (first) {
        struct kept *kept = first;
        first = kept->next;
        count(kept->stream, &kept->op, -1);
        if (kept->op.kind == OP_REPLAY)
            exec_drop(kept->op.exec);
        stream_op_done(kept->stream);
        free(kept);
    }
    last = &first;
}
