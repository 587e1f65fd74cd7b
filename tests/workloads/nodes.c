/* nodes.c: creates graphs in every possible way. For each executable graph, the program prints the nodes that
 * the driver reports. Tests compare the node counts of a trace with this output.
 *
 * The program prints "exec HANDLE KIND=COUNT …" for each executable graph, with CUgraphNodeType values as
 * kinds and with child graphs included, and "captured NUMBER" for the calls that were made on streams during
 * a capture. */
#include "workload.h"

#include <string.h>

CUresult cuLaunchHostFunc(CUstream stream, void (*function)(void *), void *data);
CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *after,
                                     const void *data, size_t count, CUstreamCaptureMode mode);
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, uint64_t *id,
                                   CUgraph *graph, const CUgraphNode **after, size_t *count);
CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode);
CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph);
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph);
CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled);

enum { KINDS = 14, KERNEL = 0, CHILD = 4, NODES_MAX = 256 };

static CUfunction fill;
static CUdeviceptr at;
static int captured;

static void add_nodes(CUgraph graph, int counts[KINDS])
{
    CUgraphNode nodes[NODES_MAX];
    size_t count = NODES_MAX;
    OK(cuGraphGetNodes(graph, nodes, &count));
    for (size_t i = 0; i < count; i++) {
        CUgraphNodeType type;
        OK(cuGraphNodeGetType(nodes[i], &type));
        counts[type]++;
        CUgraph child;
        if ((int)type == CHILD) {
            OK(cuGraphChildGraphNodeGetGraph(nodes[i], &child));
            add_nodes(child, counts);
        }
    }
}

static CUgraphExec make_exec(CUgraph graph)
{
    CUgraphExec exec;
    int counts[KINDS] = { 0 };
    OK(cuGraphInstantiate(&exec, graph, 0));
    add_nodes(graph, counts);
    printf("exec %llu", (unsigned long long)(uintptr_t)exec);
    for (int kind = 0; kind < KINDS; kind++)
        printf(" %d=%d", kind, counts[kind]);
    printf("\n");
    return exec;
}

static void host_function(void *data)
{
    (void)data;
}

static void launch_on(CUstream stream)
{
    void *params[] = { &at, &(uint32_t){ 7 }, &(uint32_t){ 1 } };
    OK(cuLaunchKernel(fill, 1, 1, 1, 128, 1, 1, 0, stream, params, NULL));
}

/* Captures two streams. The second stream is forked from the first through an event, and is later joined
 * again. */
static CUgraph capture_two_streams(CUstream first, CUstream second, CUstream outside)
{
    CUevent fork, join;
    CUgraph graph;
    uint32_t host[4] = { 0 };
    OK(cuEventCreate(&fork, 2));
    OK(cuEventCreate(&join, 2));
    OK(cuEventRecord(join, outside)); /* no effect on the capture */
    OK(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_RELAXED));
    launch_on(first);
    OK(cuEventRecord(fork, first));
    launch_on(second); /* this stream is not yet part of the capture */
    OK(cuStreamWaitEvent(second, fork, 0));
    launch_on(second);
    launch_on(second);
    OK(cuMemsetD8Async(at, 1, 64, second));
    OK(cuMemcpyDtoDAsync(at + 128, at, 64, first));
    OK(cuMemcpyHtoDAsync(at, host, sizeof(host), first));
    OK(cuLaunchHostFunc(first, host_function, NULL));
    OK(cuEventRecord(join, second));
    OK(cuStreamWaitEvent(first, join, 0));
    launch_on(first);
    launch_on(outside); /* never part of it */
    OK(cuStreamEndCapture(first, &graph));
    captured += 12;
    launch_on(second);
    OK(cuEventDestroy(fork));
    OK(cuEventDestroy(join));
    return graph;
}

static CUgraph by_hand(CUgraph child, CUgraphNode *kernel)
{
    CUgraph graph;
    CUgraphNode node, doomed;
    void *arguments[] = { &at, &(uint32_t){ 3 }, &(uint32_t){ 1 } };
    const CUDA_KERNEL_NODE_PARAMS params = { .func = fill,
                                             .gridDimX = 1,
                                             .gridDimY = 1,
                                             .gridDimZ = 1,
                                             .blockDimX = 128,
                                             .blockDimY = 1,
                                             .blockDimZ = 1,
                                             .kernelParams = arguments };
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddKernelNode(kernel, graph, NULL, 0, &params));
    OK(cuGraphAddKernelNode(&node, graph, kernel, 1, &params));
    OK(cuGraphAddKernelNode(&doomed, graph, NULL, 0, &params));
    OK(cuGraphAddEmptyNode(&node, graph, NULL, 0));
    OK(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    OK(cuGraphDestroyNode(doomed));
    return graph;
}

/* Captures into a graph that already has nodes, and explicitly adds a node during the capture. */
static CUgraphExec capture_into_graph(CUstream first)
{
    CUgraph into;
    CUgraphNode empty;
    OK(cuGraphCreate(&into, 0));
    OK(cuGraphAddEmptyNode(&empty, into, NULL, 0));
    OK(cuStreamBeginCaptureToGraph(first, into, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
    launch_on(first);
    CUstreamCaptureStatus status;
    CUgraph told;
    OK(cuStreamGetCaptureInfo_v2(first, &status, NULL, &told, NULL, NULL));
    ENSURE(told == into);
    OK(cuGraphAddEmptyNode(&empty, told, NULL, 0));
    OK(cuStreamEndCapture(first, &into));
    captured += 1;
    return make_exec(into);
}

/* Captures the thread's own stream, using a null handle and the per-thread functions. */
static CUgraphExec capture_own_stream(void)
{
    CUgraph own;
    OK(cuStreamBeginCapture_v2_ptsz(NULL, CU_STREAM_CAPTURE_MODE_RELAXED));
    void *params[] = { &at, &(uint32_t){ 7 }, &(uint32_t){ 1 } };
    OK(cuLaunchKernel_ptsz(fill, 1, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
    launch_on((CUstream)2);
    OK(cuStreamEndCapture_ptsz(NULL, &own));
    captured += 2;
    return make_exec(own);
}

int main(int argc, char **argv)
{
    static const struct option_row options[] = { { .name = NULL } };
    options_read(argc, argv, "Make graphs in every way and print what they consist of.", options);
    CUcontext context;
    CUdevice device;
    CUmodule module;
    CUstream first, second, outside;
    OK(cuInit(0));
    OK(cuDeviceGet(&device, 0));
    OK(cuDevicePrimaryCtxRetain(&context, device));
    OK(cuCtxSetCurrent(context));
    OK(cuModuleLoadData(&module, "image"));
    OK(cuModuleGetFunction(&fill, module, "fill_u32"));
    OK(cuMemAlloc(&at, 4096));
    OK(cuStreamCreate(&first, 1));
    OK(cuStreamCreate(&second, 1));
    OK(cuStreamCreate(&outside, 1));

    CUgraph graph = capture_two_streams(first, second, outside);
    CUgraphExec two_streams = make_exec(graph);

    CUgraphNode kernel;
    CUgraph made = by_hand(graph, &kernel), clone;
    CUgraphExec hand = make_exec(made);
    OK(cuGraphClone(&clone, made));
    CUgraphExec cloned = make_exec(clone);

    CUgraphExec into_exec = capture_into_graph(first), own_exec = capture_own_stream();

    OK(cuGraphLaunch(hand, first)); /* 2 kernels that were added one by one, and 4 in the child graph */
    OK(cuGraphNodeSetEnabled(hand, kernel, 0));
    OK(cuGraphNodeSetEnabled(hand, kernel, 0));
    OK(cuGraphLaunch(hand, first));
    OK(cuGraphNodeSetEnabled(hand, kernel, 1));
    OK(cuGraphLaunch(hand, first));
    OK(cuStreamSynchronize(first));
    printf("captured %d\n", captured);

    OK(cuGraphDestroy(made)); /* the clone and the executable graph continue to exist */
    OK(cuGraphLaunch(cloned, first));
    OK(cuStreamSynchronize(first));
    OK(cuGraphExecDestroy(own_exec));
    OK(cuGraphExecDestroy(into_exec));
    OK(cuGraphExecDestroy(cloned));
    OK(cuGraphExecDestroy(hand));
    OK(cuGraphExecDestroy(two_streams));
    printf("nodes: ok\n");
    return 0;
}
