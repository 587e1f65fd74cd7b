/* sim_event.c: events. A recorded event is a point on its stream's timeline. */
#include "sim_graph.h"

#include <stdlib.h>

static struct slab events = SLAB(struct CUevent_st);

CUevent event_of(CUevent event)
{
    return handle_alive(&events, event) ? event : NULL;
}

void event_record_now(CUevent event, int64_t at_ns)
{
    const int64_t now_ns = clock_now_ns();
    const int64_t least_ns =
        event->spans_context && event->recorded && event->at_ns > now_ns ? event->at_ns : now_ns;
    event->recorded = true;
    event->at_ns = at_ns > least_ns ? at_ns : least_ns;
}

static void free_event(CUevent event)
{
    free(event->tips);
    handle_free(&events, event);
}

void event_end(CUcontext context)
{
    for (CUevent event = NULL; (event = handle_next(&events, event));)
        if (event->context == context)
            free_event(event);
}

CUresult sim_cuEventCreate(CUevent *event, unsigned int flags)
{
    CUcontext context;
    const CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    if (!event || flags & ~known || (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING)))
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    CUevent made = handle_new(&events);
    if (!made)
        return driver_unlock(CUDA_ERROR_OUT_OF_MEMORY);
    made->context = context;
    made->flags = flags;
    *event = made;
    return driver_unlock(CUDA_SUCCESS);
}

/* Takes the lock, and rejects invalid events as the driver does: a destroyed event with CONTEXT_IS_DESTROYED,
 * and NULL with INVALID_HANDLE. If the call takes a stream, the function also looks up the stream. */
static CUresult lock_event(CUevent event, CUstream *stream)
{
    CUcontext context;
    CUresult result = context_lock_any(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!event_of(event))
        result = event ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_HANDLE;
    else if (stream)
        result = stream_of(stream, context);
    return result == CUDA_SUCCESS ? result : driver_unlock(result);
}

CUresult sim_cuEventDestroy_v2(CUevent event)
{
    const CUresult result = lock_event(event, NULL);
    if (result != CUDA_SUCCESS)
        return result;
    free_event(event);
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
    CUresult result = lock_event(event, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags > CU_EVENT_RECORD_EXTERNAL)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    if (stream->context != event->context)
        return driver_unlock(CUDA_ERROR_INVALID_HANDLE);
    /* Recording an event in a capture adds no node. The recorded event marks a point that other streams can
     * depend on. */
    if (stream->capture && flags != CU_EVENT_RECORD_EXTERNAL)
        return driver_unlock(capture_record(event, stream));
    event->capture_id = 0;
    event->spans_context = false;
    const struct op op = { .kind = OP_RECORD, .event = { event, event->handle.generation } };
    return driver_unlock(op_submit(stream, &op));
}

CUresult sim_cuEventRecord(CUevent event, CUstream stream)
{
    return sim_cuEventRecordWithFlags(event, stream, 0);
}

CUresult sim_cuCtxRecordEvent(CUcontext context, CUevent event)
{
    driver_lock();
    if (!context_alive(context) || !event_of(event) || event->context != context)
        return driver_unlock(CUDA_ERROR_INVALID_HANDLE);
    const struct op op = { .kind = OP_RECORD, .event = { event, event->handle.generation } };
    CUresult result = capture_forbids_context_sync(context);
    event->capture_id = 0;
    event->recorded = false;
    event->spans_context = true;
    for (CUstream stream = NULL; result == CUDA_SUCCESS && (stream = stream_next(stream));)
        result = stream->context == context ? op_submit(stream, &op) : CUDA_SUCCESS;
    return driver_unlock(result);
}

CUresult sim_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    CUresult result = lock_event(event, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags > CU_EVENT_WAIT_EXTERNAL)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    bool handled = false;
    if (flags != CU_EVENT_WAIT_EXTERNAL)
        result = capture_wait(stream, event, &handled);
    if (handled)
        return driver_unlock(result);
    const struct op op = { .kind = OP_WAIT, .event = { event, event->handle.generation } };
    return driver_unlock(op_submit(stream, &op));
}

/* Takes the lock for a call that queries an event. Rejects events that were recorded in a capture, and
 * queries that a capture forbids. */
static CUresult lock_event_to_look(CUevent event)
{
    CUresult result = lock_event(event, NULL);
    if (result != CUDA_SUCCESS)
        return result;
    result = capture_forbids_event(event);
    if (result == CUDA_SUCCESS)
        result = capture_forbids_unsafe();
    return result == CUDA_SUCCESS ? result : driver_unlock(result);
}

CUresult sim_cuEventQuery(CUevent event)
{
    const CUresult result = lock_event_to_look(event);
    if (result != CUDA_SUCCESS)
        return result;
    const bool done = event->kept == 0 && (!event->recorded || event->at_ns <= clock_now_ns());
    return driver_unlock(done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult sim_cuEventSynchronize(CUevent event)
{
    const CUresult result = lock_event_to_look(event);
    if (result != CUDA_SUCCESS)
        return result;
    const uint64_t generation = event->handle.generation;
    const CUcontext context = event->context;
    while (event->handle.generation == generation && event->kept > 0)
        driver_wait();
    if (event->handle.generation != generation || !event->recorded)
        return driver_unlock(CUDA_SUCCESS);
    const int64_t at_ns = event->at_ns;
    const CUresult fault = context->fault;
    driver_release();
    clock_sleep_until_ns(at_ns);
    return fault;
}
