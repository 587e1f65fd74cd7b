/* sim_capture.c: stream capture. A captured stream has a struct capture, and tips, which are the nodes that
 * the stream's next op will depend on. Other streams join the capture by waiting for an event that was
 * recorded in it.
 *
 * The results of calls that end or invalidate a capture were observed with driver 580.159.04. As in that
 * driver, a capture that has been invalidated and a capture that has ended with an error are in the same
 * state. Every later call returns CUDA_ERROR_STREAM_CAPTURE_INVALIDATED until the program ends the
 * capture. */
#include "sim_graph.h"

#include <stdlib.h>
#include <string.h>

static struct capture *captures; /* captures in progress */

static struct capture *find(uint64_t id)
{
    struct capture *capture = captures;
    while (capture && capture->id != id)
        capture = capture->next;
    return capture;
}

static CUresult set_tips(CUgraphNode **tips, size_t *tip_count, const CUgraphNode *nodes, size_t count)
{
    CUgraphNode *copy = malloc((count ? count : 1) * sizeof *copy);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (count)
        memcpy(copy, nodes, count * sizeof *copy);
    free(*tips);
    *tips = copy;
    *tip_count = count;
    return CUDA_SUCCESS;
}

static CUresult add_tips(CUstream stream, const CUgraphNode *nodes, size_t count)
{
    CUgraphNode *grown = realloc(stream->tips, (stream->tip_count + count + 1) * sizeof *grown);
    if (!grown)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stream->tips = grown;
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < stream->tip_count && stream->tips[at] != nodes[i])
            at++;
        if (at == stream->tip_count)
            stream->tips[stream->tip_count++] = nodes[i];
    }
    return CUDA_SUCCESS;
}

CUresult capture_add(CUstream stream, const struct op *op)
{
    CUgraphNode added;
    if (stream->capture->invalidated)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (op->kind == OP_REPLAY) /* driver 580 does not capture graph launches */
        return capture_spoil(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CUresult result = graph_add(&added, stream->capture->graph, op, stream->tips, stream->tip_count);
    if (result == CUDA_SUCCESS)
        result = set_tips(&stream->tips, &stream->tip_count, &added, 1);
    return result;
}

CUresult capture_spoil(CUstream stream, CUresult result)
{
    if (stream->capture)
        stream->capture->invalidated = true;
    return result;
}

/* Checks whether a capture forbids an unsafe call. The rules are documented for
 * cuThreadExchangeStreamCaptureMode, and all threads are assumed to be in their initial mode. A global
 * capture forbids unsafe calls in all threads. A thread-local capture forbids them only in the thread that
 * began the capture. */
CUresult capture_forbids_unsafe(void)
{
    bool forbidden = false;
    for (struct capture *capture = captures; capture; capture = capture->next)
        if (capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
            (capture->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
             pthread_equal(capture->thread, pthread_self())))
            forbidden = capture->invalidated = true;
    return forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult capture_forbids_context_sync(CUcontext context)
{
    bool forbidden = false;
    for (struct capture *capture = captures; capture; capture = capture->next)
        if (capture->origin && capture->origin->context == context)
            forbidden = capture->invalidated = true;
    return forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

/* If `stream` is the legacy stream, returns a captured stream that the legacy stream would have to wait for,
 * or NULL. */
static CUstream captured_behind(CUstream stream)
{
    if (!captures || stream->kind != STREAM_LEGACY)
        return NULL;
    for (CUstream other = NULL; (other = stream_next(other));)
        if (other->capture && other->context == stream->context && stream_is_blocking(other))
            return other;
    return NULL;
}

CUresult capture_forbids_legacy(CUstream stream)
{
    const CUstream captured = captured_behind(stream);
    return captured ? capture_spoil(captured, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) : CUDA_SUCCESS;
}

CUresult capture_record(CUevent event, CUstream stream)
{
    if (stream->capture->invalidated)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    event->capture_id = stream->capture->id;
    return set_tips(&event->tips, &event->tip_count, stream->tips, stream->tip_count);
}

CUresult capture_wait(CUstream stream, CUevent event, bool *handled)
{
    *handled = stream->capture || event->capture_id;
    if (!*handled)
        return CUDA_SUCCESS;
    if (!event->capture_id)
        return event->recorded || event->kept ? capture_spoil(stream, CUDA_ERROR_STREAM_CAPTURE_ISOLATION)
                                              : CUDA_SUCCESS;
    struct capture *capture = find(event->capture_id);
    if (!capture)
        return capture_spoil(stream, CUDA_ERROR_INVALID_VALUE);
    if (stream->capture && stream->capture != capture) {
        capture->invalidated = true;
        return capture_spoil(stream, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    if (capture->invalidated)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->kind == STREAM_LEGACY) {
        capture->invalidated = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (!stream->capture)
        stream->tip_count = 0; /* left by an earlier capture */
    stream->capture = capture;
    return add_tips(stream, event->tips, event->tip_count);
}

CUresult capture_forbids_event(CUevent event)
{
    if (!event->capture_id)
        return CUDA_SUCCESS;
    struct capture *capture = find(event->capture_id);
    if (!capture)
        return CUDA_ERROR_INVALID_VALUE;
    capture->invalidated = true;
    return CUDA_ERROR_CAPTURED_EVENT;
}

/* Takes a stream out of its capture when the capture ends or the stream is destroyed. If the stream is
 * destroyed, the capture can no longer be completed. */
void capture_leave(CUstream stream)
{
    struct capture *capture = stream->capture;
    if (!capture)
        return;
    capture->invalidated = true;
    stream->capture = NULL;
    if (capture->origin != stream)
        return;
    capture->origin = NULL;
    struct capture **link = &captures;
    while (*link != capture)
        link = &(*link)->next;
    *link = capture->next;
    for (CUstream other = NULL; (other = stream_next(other));)
        if (other->capture == capture)
            other->capture = NULL;
    if (!capture->graph_is_programs)
        graph_free(capture->graph);
    free(capture);
}

static CUresult begin(CUstream stream, CUstreamCaptureMode mode, CUgraph graph, const CUgraphNode *after,
                      size_t after_count)
{
    CUresult result = stream_lock(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    if (stream->kind == STREAM_LEGACY)
        return driver_unlock(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (stream->capture)
        return driver_unlock(CUDA_ERROR_ILLEGAL_STATE);
    struct capture *capture = calloc(1, sizeof *capture);
    if (!capture)
        return driver_unlock(CUDA_ERROR_OUT_OF_MEMORY);
    capture->graph = graph;
    capture->graph_is_programs = graph != NULL;
    result = graph ? CUDA_SUCCESS : graph_new(&capture->graph);
    if (result == CUDA_SUCCESS)
        result = set_tips(&stream->tips, &stream->tip_count, after, after_count);
    if (result != CUDA_SUCCESS) {
        free(capture);
        return driver_unlock(result);
    }
    capture->origin = stream;
    capture->mode = mode;
    static uint64_t ids;
    capture->id = ++ids;
    capture->thread = pthread_self();
    capture->next = captures;
    captures = capture;
    stream->capture = capture;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    return begin(stream, mode, NULL, NULL, 0);
}

CUresult sim_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *after,
                                         const CUgraphEdgeData *edges, size_t after_count,
                                         CUstreamCaptureMode mode)
{
    (void)edges;
    driver_lock();
    const bool valid = graph_of(graph) && (after || after_count == 0);
    driver_release();
    return valid ? begin(stream, mode, graph, after, after_count) : CUDA_ERROR_INVALID_VALUE;
}

/* Checks that every stream that joined the capture has also been joined to the origin stream again, so that
 * the tips of the origin stream depend on the tips of the other stream. Nodes are in the order of their
 * capture, so a single backward walk finds all dependencies. */
static bool all_joined(const struct capture *capture)
{
    const CUgraph graph = capture->graph;
    for (size_t i = 0; i < graph->node_count; i++)
        graph->nodes[i]->place = 0;
    for (size_t i = 0; i < capture->origin->tip_count; i++)
        capture->origin->tips[i]->place = 1;
    for (size_t i = graph->node_count; i-- > 0;)
        for (size_t j = 0; graph->nodes[i]->place == 1 && j < graph->nodes[i]->after_count; j++)
            graph->nodes[i]->after[j]->place = 1;
    for (CUstream stream = NULL; (stream = stream_next(stream));)
        for (size_t i = 0; stream->capture == capture && i < stream->tip_count; i++)
            if (stream->tips[i]->place == 0)
                return false;
    return true;
}

CUresult sim_cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    CUresult result = stream_lock(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    struct capture *capture = stream->capture;
    if (!graph)
        return driver_unlock(capture_spoil(stream, CUDA_ERROR_INVALID_VALUE));
    if (!capture)
        return driver_unlock(CUDA_ERROR_ILLEGAL_STATE);
    if (capture->origin != stream)
        return driver_unlock(capture_spoil(stream, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED));
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(capture->thread, pthread_self()))
        result = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    else if (capture->invalidated)
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!all_joined(capture))
        result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    *graph = NULL;
    if (result == CUDA_SUCCESS) {
        *graph = capture->graph;
        capture->graph_is_programs = true;
    }
    capture_leave(stream);
    return driver_unlock(result);
}

static CUresult capture_info(CUstream stream, CUstreamCaptureStatus *status, uint64_t *id, CUgraph *graph,
                             const CUgraphNode **tips, size_t *tip_count)
{
    const CUresult result = stream_lock(&stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!status)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    if (captured_behind(stream)) /* this query does not invalidate the capture */
        return driver_unlock(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    const struct capture *capture = stream->capture;
    *status = !capture               ? CU_STREAM_CAPTURE_STATUS_NONE
              : capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                     : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return driver_unlock(CUDA_SUCCESS);
    if (id)
        *id = capture->id;
    if (graph)
        *graph = capture->graph;
    if (tips)
        *tips = stream->tips;
    if (tip_count)
        *tip_count = stream->tip_count;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    return capture_info(stream, status, NULL, NULL, NULL, NULL);
}

CUresult sim_cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, uint64_t *id,
                                       CUgraph *graph, const CUgraphNode **tips, size_t *tip_count)
{
    return capture_info(stream, status, id, graph, tips, tip_count);
}
