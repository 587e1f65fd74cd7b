/* sim_stream.c: streams, their timelines, and how to wait for streams. Each stream has a time on
 * CLOCK_MONOTONIC until which it is busy. No code runs when that time is reached, but a thread that
 * synchronizes with the stream sleeps until then. */
#include "sim_graph.h"

#include <stdlib.h>

static struct slab streams = SLAB(struct CUstream_st);

/* The calling thread's own default stream, in the context where that stream was last used. */
static _Thread_local struct {
    CUstream stream;
    uint64_t generation;
} own;

static pthread_key_t own_key;
static pthread_once_t own_key_once = PTHREAD_ONCE_INIT;

extern _Thread_local bool sim_null_stream_is_thread; /* set by the code of sim_entries.py if the function's
                                                      * name ends in _ptds or _ptsz */

static CUresult new_stream(CUstream *stream, CUcontext context, enum stream_kind kind)
{
    CUstream made = handle_new(&streams);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->context = context;
    made->kind = kind;
    if (stream_is_blocking(made))
        context->blocking_streams++;
    *stream = made;
    return CUDA_SUCCESS;
}

static void free_stream(CUstream stream)
{
    capture_leave(stream);
    if (stream_is_blocking(stream))
        stream->context->blocking_streams--;
    free(stream->tips);
    handle_free(&streams, stream);
}

CUresult stream_new_legacy(CUcontext context)
{
    return new_stream(&context->legacy, context, STREAM_LEGACY);
}

bool stream_is_blocking(CUstream stream)
{
    return stream->kind == STREAM_BLOCKING || stream->kind == STREAM_THREAD;
}

CUstream stream_next(const void *previous)
{
    return handle_next(&streams, previous);
}

/* Destroys the thread's stream when the thread exits. If a later destructor makes a call, the thread receives
 * another stream, and this function runs again. */
static void forget_thread_stream(void *stream)
{
    driver_lock();
    if (own.stream == stream && own.stream->handle.generation == own.generation && !own.stream->dying) {
        own.stream->dying = true;
        stream_op_done(own.stream);
    }
    own.stream = NULL;
    driver_release();
}

static void make_own_key(void)
{
    pthread_key_create(&own_key, forget_thread_stream);
}

static CUresult thread_stream(CUstream *stream, CUcontext context)
{
    if (!own.stream || own.stream->handle.generation != own.generation || own.stream->context != context) {
        const CUresult result = new_stream(&own.stream, context, STREAM_THREAD);
        if (result != CUDA_SUCCESS)
            return result;
        own.generation = own.stream->handle.generation;
        pthread_once(&own_key_once, make_own_key);
        pthread_setspecific(own_key, own.stream);
    }
    *stream = own.stream;
    return CUDA_SUCCESS;
}

CUresult stream_of(CUstream *stream, CUcontext current)
{
    const bool thread = *stream == CU_STREAM_PER_THREAD || (!*stream && sim_null_stream_is_thread);
    if (thread || *stream == CU_STREAM_LEGACY || !*stream) {
        if (!current)
            return CUDA_ERROR_INVALID_CONTEXT;
        if (thread)
            return thread_stream(stream, current);
        *stream = current->legacy;
        return CUDA_SUCCESS;
    }
    return handle_alive(&streams, *stream) && !(*stream)->dying ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* Returns the time until which the stream's next op must wait. The legacy stream and blocking streams wait
 * for each other. */
int64_t stream_barrier_ns(CUstream stream)
{
    int64_t until_ns = stream->busy_until_ns;
    if (stream_is_blocking(stream) && stream->context->legacy->busy_until_ns > until_ns)
        until_ns = stream->context->legacy->busy_until_ns;
    if (stream->kind == STREAM_LEGACY && stream->context->blocking_streams > 0)
        for (CUstream other = NULL; (other = stream_next(other));)
            if (other->context == stream->context && stream_is_blocking(other) &&
                other->busy_until_ns > until_ns)
                until_ns = other->busy_until_ns;
    return until_ns;
}

bool stream_is_held_up(CUstream stream)
{
    if (stream->kept > 0)
        return true;
    if (stream_is_blocking(stream))
        return stream->context->legacy->kept > 0;
    if (stream->kind == STREAM_LEGACY && stream->context->blocking_streams > 0)
        for (CUstream other = NULL; (other = stream_next(other));)
            if (other->context == stream->context && stream_is_blocking(other) && other->kept > 0)
                return true;
    return false;
}

void stream_op_done(CUstream stream)
{
    if (stream->dying && stream->kept == 0)
        free_stream(stream);
}

static void sleep_until(int64_t until_ns)
{
    if (until_ns <= clock_now_ns())
        return;
    driver_release();
    clock_sleep_until_ns(until_ns);
    driver_lock();
}

void stream_wait(CUstream stream)
{
    const uint64_t generation = stream->handle.generation;
    while (stream->handle.generation == generation && stream_is_held_up(stream))
        driver_wait();
    if (stream->handle.generation == generation)
        sleep_until(stream_barrier_ns(stream));
}

CUresult context_wait(CUcontext context)
{
    const uint64_t generation = context->handle.generation;
    int64_t until_ns;
    for (bool held_up = true; held_up;) {
        held_up = false;
        until_ns = 0;
        for (CUstream stream = NULL; (stream = stream_next(stream));) {
            if (stream->context != context)
                continue;
            held_up |= stream->kept > 0;
            if (stream->busy_until_ns > until_ns)
                until_ns = stream->busy_until_ns;
        }
        if (held_up)
            driver_wait();
        if (context->handle.generation != generation)
            return CUDA_SUCCESS;
    }
    const CUresult fault = context->fault;
    sleep_until(until_ns);
    return fault;
}

void stream_end(CUcontext context)
{
    for (CUstream stream = NULL; (stream = stream_next(stream));)
        if (stream->context == context)
            free_stream(stream);
}

CUresult sim_cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
    CUcontext context;
    const CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!stream || flags > CU_STREAM_NON_BLOCKING)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    (void)priority;
    return driver_unlock(
        new_stream(stream, context, flags == CU_STREAM_NON_BLOCKING ? STREAM_NON_BLOCKING : STREAM_BLOCKING));
}

CUresult sim_cuStreamCreate(CUstream *stream, unsigned int flags)
{
    return sim_cuStreamCreateWithPriority(stream, flags, 0);
}

/* The handle becomes invalid immediately, but the stream continues to exist until its last op has run. */
CUresult sim_cuStreamDestroy_v2(CUstream stream)
{
    CUcontext context;
    const CUresult result = context_lock_any(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle_alive(&streams, stream) || stream->dying || stream->kind == STREAM_LEGACY ||
        stream->kind == STREAM_THREAD)
        return driver_unlock(CUDA_ERROR_INVALID_HANDLE);
    stream->dying = true;
    stream_op_done(stream);
    return driver_unlock(CUDA_SUCCESS);
}

CUresult stream_lock(CUstream *stream)
{
    CUcontext context;
    CUresult result = context_lock_any(&context);
    if (result != CUDA_SUCCESS)
        return result;
    result = stream_of(stream, context);
    return result == CUDA_SUCCESS ? result : driver_unlock(result);
}

/* Takes the lock for a query of a stream's state. A query of a stream's state cannot be captured, and
 * invalidates any capture that it might disturb. */
static CUresult lock_stream_to_look(CUstream *stream)
{
    CUresult result = stream_lock(stream);
    if (result != CUDA_SUCCESS)
        return result;
    result = (*stream)->capture ? capture_spoil(*stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
                                : capture_forbids_unsafe();
    if (result == CUDA_SUCCESS)
        result = capture_forbids_legacy(*stream);
    return result == CUDA_SUCCESS ? result : driver_unlock(result);
}

CUresult sim_cuStreamSynchronize(CUstream stream)
{
    const CUresult result = lock_stream_to_look(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    const CUcontext context = stream->context;
    stream_wait(stream);
    return driver_unlock(context->fault);
}

CUresult sim_cuStreamQuery(CUstream stream)
{
    const CUresult result = lock_stream_to_look(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    const bool done = !stream_is_held_up(stream) && stream_barrier_ns(stream) <= clock_now_ns();
    return driver_unlock(done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult sim_cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data)
{
    const CUresult result = stream_lock(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    const struct op op = { .kind = OP_HOST, .host = { .fn = function, .userData = data } };
    return driver_unlock(op_submit(stream, &op));
}
