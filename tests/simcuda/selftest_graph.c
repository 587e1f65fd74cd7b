/* selftest_graph.c: stream capture, and graphs made by it or by hand. */
#include "selftest.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static CUdeviceptr memory;
static CUstream stream;
static CUfunction function;

static CUresult fill(uint32_t value, uint32_t count, CUstream on)
{
    void *params[] = { &memory, &value, &count };
    return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, on, params, NULL);
}

static uint32_t word(size_t index)
{
    uint32_t value;
    OK(cuMemcpyDtoH(&value, memory + index * sizeof value, sizeof value));
    return value;
}

static CUcontext prepare(void)
{
    CUcontext context = start();
    function = get_function("fill_u32");
    OK(cuMemAlloc(&memory, 4096));
    OK(cuMemsetD8(memory, 0, 4096));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return context;
}

static void expect_types(CUgraph graph, const CUgraphNodeType *types, size_t count)
{
    CUgraphNode nodes[32];
    size_t found = 32;
    OK(cuGraphGetNodes(graph, nodes, &found));
    CHECK(found == count);
    for (size_t i = 0; i < count; i++) {
        CUgraphNodeType type;
        OK(cuGraphNodeGetType(nodes[i], &type));
        CHECK(type == types[i]);
    }
}

static void captured_work_runs_at_each_replay(void)
{
    static const CUgraphNodeType types[] = { CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_MEMSET,
                                             CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_KERNEL };
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode nodes[2];
    size_t count = 0;
    prepare();
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(fill(5, 4, stream));
    OK(cuMemsetD32Async(memory + 16, 6, 4, stream));
    OK(cuMemcpyDtoDAsync(memory + 32, memory, 32, stream));
    OK(cuMemcpyDtoDAsync(memory + 32, memory, 0, stream));
    OK(fill(7, 1, stream));
    OK(cuStreamEndCapture(stream, &graph));
    CHECK(word(0) == 0 && word(4) == 0);
    expect_types(graph, types, 4);
    OK(cuGraphGetEdges(graph, NULL, NULL, &count));
    CHECK(count == 3);
    count = 2;
    OK(cuGraphGetRootNodes(graph, nodes, &count));
    CHECK(count == 1 && !nodes[1]);
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
    for (int i = 0; i < 3; i++) {
        OK(cuMemsetD8(memory, 0, 4096));
        OK(cuGraphLaunch(exec, stream));
        OK(cuStreamSynchronize(stream));
        CHECK(word(0) == 7 && word(1) == 5 && word(4) == 6 && word(8) == 5 && word(15) == 6 && word(16) == 0);
    }
    OK(cuGraphExecDestroy(exec));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, stream));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(graph));
}

static CUresult end(void)
{
    CUgraph graph = NULL;
    const CUresult result = cuStreamEndCapture(stream, &graph);
    CHECK((result == CUDA_SUCCESS) == (graph != NULL));
    return result;
}

static CUresult capture_status(void)
{
    CUstreamCaptureStatus status;
    OK(cuStreamIsCapturing(stream, &status));
    return (CUresult)status;
}

/* Begin a capture, make a call that must end it with the result given, and see that it did. */
#define SPOILS(mode, expected, call)                                                                         \
    do {                                                                                                     \
        OK(cuStreamBeginCapture(stream, mode));                                                              \
        CHECK_RESULT(expected, call);                                                                        \
        CHECK(capture_status() == (CUresult)CU_STREAM_CAPTURE_STATUS_INVALIDATED);                           \
        CHECK_RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, fill(1, 1, stream));                             \
        CHECK_RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end());                                          \
        CHECK(capture_status() == (CUresult)CU_STREAM_CAPTURE_STATUS_NONE);                                  \
    } while (0)

#define SPARES(mode, call)                                                                                   \
    do {                                                                                                     \
        OK(cuStreamBeginCapture(stream, mode));                                                              \
        OK(call);                                                                                            \
        OK(end());                                                                                           \
    } while (0)

static void what_spoils_a_capture_on_the_real_driver_does_here(void)
{
    const CUstreamCaptureMode global = CU_STREAM_CAPTURE_MODE_GLOBAL,
                              relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUdeviceptr other;
    CUevent event;
    CUstream second;
    char byte;
    prepare();
    OK(cuEventCreate(&event, 0));
    OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    SPOILS(global, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(stream));
    SPOILS(global, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery(stream));
    SPOILS(relaxed, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery(stream));
    SPOILS(global, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(second));
    SPARES(relaxed, cuStreamSynchronize(second));
    SPOILS(global, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxSynchronize());
    SPOILS(relaxed, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxSynchronize());
    SPOILS(global, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&other, 4));
    SPARES(relaxed, cuMemAlloc(&other, 4));
    SPOILS(global, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuEventQuery(event));
    SPOILS(global, CUDA_ERROR_INVALID_VALUE,
           cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    SPARES(global, cuMemcpyDtoH(&byte, memory, 1));
    SPARES(global, cuEventCreate(&event, 0));
    SPARES(global, cuMemcpyDtoHAsync(&byte, memory, 1, stream));
    CHECK_RESULT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture(NULL, global));
    CHECK_RESULT(CUDA_ERROR_ILLEGAL_STATE, end());
    OK(cuStreamBeginCapture(stream, global));
    CHECK_RESULT(CUDA_ERROR_ILLEGAL_STATE, cuStreamBeginCapture(stream, global));
    OK(end());
}

static void the_legacy_stream_spoils_captures_of_blocking_ones(void)
{
    CUstreamCaptureStatus status;
    prepare();
    OK(cuStreamDestroy(stream));
    OK(cuStreamCreate(&stream, 0));
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK_RESULT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(NULL, &status));
    CHECK(capture_status() == (CUresult)CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CHECK_RESULT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, fill(1, 1, NULL));
    CHECK_RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end());
}

static void *allocate_elsewhere(void *expected)
{
    CUdeviceptr other;
    CUcontext context;
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    CHECK_RESULT((CUresult)(intptr_t)expected, cuMemAlloc(&other, 4));
    return NULL;
}

static void in_thread(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, body, argument) == 0 && pthread_join(thread, NULL) == 0);
}

static void *end_elsewhere(void *unused)
{
    (void)unused;
    CHECK_RESULT(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, end());
    return NULL;
}

static void captures_reach_other_threads_by_their_mode(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUdeviceptr other;
    prepare();
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    in_thread(allocate_elsewhere, (void *)(intptr_t)CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end());
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    in_thread(allocate_elsewhere, (void *)(intptr_t)CUDA_SUCCESS);
    in_thread(end_elsewhere, NULL);
    CHECK_RESULT(CUDA_ERROR_ILLEGAL_STATE, end());
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuMemAlloc(&other, 4));
    OK(end());
}

static void streams_join_a_capture_through_events(void)
{
    static const CUgraphNodeType external[] = { CU_GRAPH_NODE_TYPE_EVENT_RECORD };
    CUstream second;
    CUevent fork_event, join_event;
    CUgraph graph;
    CUstreamCaptureStatus status;
    size_t edges;
    prepare();
    OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&fork_event, 0));
    OK(cuEventCreate(&join_event, 0));
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(fill(1, 1, stream));
    OK(cuEventRecord(fork_event, stream));
    OK(cuStreamWaitEvent(second, fork_event, 0));
    OK(cuStreamIsCapturing(second, &status));
    CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    OK(fill(2, 2, second));
    OK(fill(3, 1, stream));
    OK(cuEventRecord(join_event, second));
    OK(cuStreamWaitEvent(stream, join_event, 0));
    OK(fill(4, 1, stream));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphGetEdges(graph, NULL, NULL, &edges));
    CHECK(edges == 4);
    OK(cuStreamIsCapturing(second, &status));
    CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuEventQuery(join_event));

    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuEventRecord(fork_event, stream));
    OK(cuStreamWaitEvent(second, fork_event, 0));
    OK(fill(2, 2, second));
    CHECK_RESULT(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, end());
    OK(cuEventRecord(fork_event, second));
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK_RESULT(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(stream, fork_event, 0));
    CHECK_RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end());
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuEventRecord(fork_event, stream));
    CHECK_RESULT(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(fork_event));
    CHECK_RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end());
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuEventRecordWithFlags(join_event, stream, CU_EVENT_RECORD_EXTERNAL));
    OK(cuStreamEndCapture(stream, &graph));
    expect_types(graph, external, 1);
}

static void host_node(void *count)
{
    ++*(int *)count;
}

static void graphs_are_made_by_hand(void)
{
    static const CUgraphNodeType types[] = { CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_MEMCPY,
                                             CU_GRAPH_NODE_TYPE_MEMSET, CU_GRAPH_NODE_TYPE_HOST,
                                             CU_GRAPH_NODE_TYPE_EMPTY,  CU_GRAPH_NODE_TYPE_GRAPH };
    CUgraph graph, child, clone;
    CUgraphNode kernel, copy, set, host, empty, nested, in_child;
    CUgraphExec exec;
    uint32_t value = 9, count = 4;
    int host_calls = 0;
    CUcontext context = prepare();
    void *params[] = { &memory, &value, &count };
    const CUDA_KERNEL_NODE_PARAMS launch = {
        .func = function,
        .gridDimX = 1,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = 1,
        .blockDimY = 1,
        .blockDimZ = 1,
        .kernelParams = params,
    };
    const CUDA_MEMCPY3D move = {
        .srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = memory,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = memory + 64,
        .WidthInBytes = 16,
        .Height = 1,
        .Depth = 1,
    };
    const CUDA_MEMSET_NODE_PARAMS clear = {
        .dst = memory, .value = 3, .elementSize = 4, .width = 2, .height = 1
    };
    const CUDA_MEMSET_NODE_PARAMS in_nested = {
        .dst = memory + 128, .value = 8, .elementSize = 4, .width = 1, .height = 1
    };
    const CUDA_HOST_NODE_PARAMS call = { .fn = host_node, .userData = &host_calls };
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphCreate(&child, 0));
    OK(cuGraphAddMemsetNode(&in_child, child, NULL, 0, &in_nested, context));
    OK(cuGraphAddKernelNode(&kernel, graph, NULL, 0, &launch));
    OK(cuGraphAddMemcpyNode(&copy, graph, &kernel, 1, &move, context));
    OK(cuGraphAddMemsetNode(&set, graph, &copy, 1, &clear, context));
    OK(cuGraphAddHostNode(&host, graph, &set, 1, &call));
    OK(cuGraphAddEmptyNode(&empty, graph, &host, 1));
    OK(cuGraphAddChildGraphNode(&nested, graph, &empty, 1, child));
    expect_types(graph, types, 6);
    OK(cuGraphClone(&clone, graph));
    expect_types(clone, types, 6);
    value = 1000; /* the node has its own copy of the parameters */
    OK(cuGraphInstantiate(&exec, clone, 0));
    for (int i = 1; i <= 2; i++) {
        OK(cuGraphLaunch(exec, stream));
        OK(cuStreamSynchronize(stream));
        CHECK(word(0) == 3 && word(2) == 9 && word(16) == 9 && word(19) == 9 && word(32) == 8 &&
              host_calls == i);
    }
    OK(cuGraphDestroy(child));
    OK(cuGraphDestroy(clone));
    CUDA_KERNEL_NODE_PARAMS read;
    OK(cuGraphKernelNodeGetParams(kernel, &read));
    CHECK(read.func == function && **(uint32_t **)&read.kernelParams[1] == 9);
    OK(cuGraphDestroyNode(set));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuGraphDestroyNode(set));
    OK(cuGraphAddDependencies(graph, &nested, &kernel, 1));
    OK(cuGraphAddDependencies(graph, &copy, &nested, 1));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
}

static void every_instantiation_function_works(void)
{
    CUresult (*old[2])(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t) = {
        (CUresult(*)(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t))dlsym(RTLD_DEFAULT,
                                                                                  "cuGraphInstantiate"),
        (CUresult(*)(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t))dlsym(RTLD_DEFAULT,
                                                                                  "cuGraphInstantiate_v2"),
    };
    CUresult (*with[2])(CUgraphExec *, CUgraph, void *) = {
        (CUresult(*)(CUgraphExec *, CUgraph, void *))dlsym(RTLD_DEFAULT, "cuGraphInstantiateWithParams"),
        (CUresult(*)(CUgraphExec *, CUgraph, void *))dlsym(RTLD_DEFAULT, "cuGraphInstantiateWithParams_ptsz"),
    };
    struct {
        uint64_t flags;
        CUstream upload;
        CUgraphNode error;
        int result;
    } params = { .flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD, .result = 9 };
    CUgraph graph;
    CUgraphExec exec;
    char log[16];
    prepare();
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(fill(5, 1, stream));
    OK(cuStreamEndCapture(stream, &graph));
    for (int i = 0; i < 2; i++) {
        OK(old[i](&exec, graph, NULL, log, sizeof log));
        OK(cuGraphLaunch(exec, stream));
        OK(cuGraphExecDestroy(exec));
        OK(with[i](&exec, graph, &params));
        CHECK(params.result == 0);
        OK(cuGraphLaunch(exec, stream));
        OK(cuGraphExecDestroy(exec));
    }
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&exec, graph, 1024));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&exec, NULL, 0));
}

static void memory_of_a_graph_lives_with_it(void)
{
    static const CUgraphNodeType types[] = { CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_MEMSET,
                                             CU_GRAPH_NODE_TYPE_MEM_FREE };
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr inside;
    size_t before, after, total;
    prepare();
    OK(cuMemGetInfo(&before, &total));
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuMemAllocAsync(&inside, 4096, stream));
    OK(cuMemsetD8Async(inside, 1, 4096, stream));
    OK(cuMemFreeAsync(inside, stream));
    OK(cuStreamEndCapture(stream, &graph));
    expect_types(graph, types, 3);
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
    OK(cuGraphLaunch(exec, stream));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuGraphExecDestroy(exec));
    OK(cuMemGetInfo(&after, &total));
    CHECK(before == after);
}

const struct selftest graph_tests[] = {
    { "capture-replay", captured_work_runs_at_each_replay, NULL },
    { "capture-spoiled", what_spoils_a_capture_on_the_real_driver_does_here, NULL },
    { "capture-legacy", the_legacy_stream_spoils_captures_of_blocking_ones, NULL },
    { "capture-threads", captures_reach_other_threads_by_their_mode, NULL },
    { "capture-events", streams_join_a_capture_through_events, NULL },
    { "graph-by-hand", graphs_are_made_by_hand, NULL },
    { "graph-instantiate", every_instantiation_function_works, NULL },
    { "graph-memory", memory_of_a_graph_lives_with_it, NULL },
    { NULL, NULL, NULL },
};
