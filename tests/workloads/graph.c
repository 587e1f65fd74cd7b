/* graph.c: captures launches into a graph, replays the graph, and checks the memory that the replays
 * wrote. */
#include "workload.h"

#include <string.h>

static long long launches = 20, replays = 50, via = VIA_PROCADDRESS;

static const struct option_row options[] = {
    NUMBER_OPTION("launches", "launches to capture", &launches, 1, 4096),
    NUMBER_OPTION("replays", "launches of the graph", &replays, 0, 1 << 30),
    VIA_OPTION(&via),
    { .name = NULL },
};

int main(int argc, char **argv)
{
    CUmodule module;
    CUfunction fill;
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr at;
    static uint32_t words[4096];
    options_read(argc, argv, "Capture kernel launches into a graph and replay it.", options);
    driver_open((enum via)via);
    driver_start();
    OK(cu.ModuleLoadData(&module, "image"));
    OK(cu.ModuleGetFunction(&fill, module, "fill_u32"));
    OK(cu.MemAlloc(&at, sizeof words));
    OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));

    OK(cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    for (long long i = 0; i < launches; i++)
        OK(launch_fill(fill, at + (CUdeviceptr)i * sizeof *words, (uint32_t)i + 1, 1, stream));
    OK(cu.StreamEndCapture(stream, &graph));
    OK(cu.GraphInstantiate(&exec, graph, NULL, NULL, 0));
    for (long long i = 0; i < replays; i++) {
        OK(cu.MemsetD8Async(at, 0, (size_t)launches * sizeof *words, stream));
        OK(cu.GraphLaunch(exec, stream));
    }
    OK(cu.StreamSynchronize(stream));
    OK(cu.MemcpyDtoH(words, at, (size_t)launches * sizeof *words));
    for (long long i = 0; replays > 0 && i < launches; i++)
        ENSURE(words[i] == (uint32_t)i + 1);
    OK(cu.GraphExecDestroy(exec));
    OK(cu.GraphDestroy(graph));
    OK(cu.StreamDestroy(stream));
    OK(cu.MemFree(at));
    OK(cu.ModuleUnload(module));
    printf("graph: captured=%lld replays=%lld ok\n", launches, replays);
    return 0;
}
