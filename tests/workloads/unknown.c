/* unknown.c: launches graphs whose kernel counts cannot be known, because they have conditional nodes or were
 * created without the hook. The program prints "graph NAME HANDLE" for each executable graph, in the order of
 * the launches. */
#include "simcuda_verify.h"
#include "workload.h"

#include "cuda_types.h"

#include <dlfcn.h>

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                        CUgraphNodeParams *params);

static CUfunction kernel;
static CUstream stream;

static CUgraphNodeParams kernel_node(void)
{
    return (CUgraphNodeParams){ .type = CU_GRAPH_NODE_TYPE_KERNEL,
                                .kernel = { .func = kernel,
                                            .gridDimX = 1,
                                            .gridDimY = 1,
                                            .gridDimZ = 1,
                                            .blockDimX = 1,
                                            .blockDimY = 1,
                                            .blockDimZ = 1 } };
}

static void add_kernels(CUgraph graph, int count)
{
    CUgraphNode node;
    CUgraphNodeParams params = kernel_node();
    for (int i = 0; i < count; i++)
        OK(cuGraphAddNode(&node, graph, NULL, 0, &params));
}

static void launch(const char *name, CUgraphExec exec)
{
    OK(cuGraphLaunch(exec, stream));
    printf("graph %s %llu\n", name, (unsigned long long)(uintptr_t)exec);
}

static void launch_graph(const char *name, CUgraph graph)
{
    CUgraphExec exec;
    OK(cuGraphInstantiate(&exec, graph, 0));
    launch(name, exec);
}

/* Returns a graph with two kernels, and a body of three kernels that runs as often as the GPU decides. */
static CUgraph conditional(void)
{
    CUgraph graph;
    CUgraphNode node;
    CUgraphNodeParams loop = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
                               .conditional = { .handle = 1, .size = 1 } };
    OK(cuGraphCreate(&graph, 0));
    add_kernels(graph, 2);
    OK(cuGraphAddNode(&node, graph, NULL, 0, &loop));
    ENSURE(loop.conditional.phGraph_out && loop.conditional.phGraph_out[0]);
    add_kernels(loop.conditional.phGraph_out[0], 3);
    return graph;
}

/* Returns a function of the driver itself, as libraries obtain it from cuGetExportTable. */
static void *past_the_hook(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    ENSURE(library);
    simcuda_inner_of *inner = (simcuda_inner_of *)(uintptr_t)dlsym(library, "simcuda_inner_function");
    ENSURE(inner);
    return inner(name);
}

int main(int argc, char **argv)
{
    static const struct option_row options[] = { { .name = NULL } };
    options_read(argc, argv, "Launch graphs of which nobody can say what they run.", options);
    CUmodule module;
    CUgraph plain, parent, hidden;
    CUgraphExec exec;
    CUgraphNode node;
    driver_open(VIA_LINKED);
    driver_start();
    OK(cuModuleLoadData(&module, "image"));
    OK(cuModuleGetFunction(&kernel, module, "kernel"));
    OK(cuStreamCreate(&stream, 0));

    OK(cuGraphCreate(&plain, 0));
    add_kernels(plain, 4);
    launch_graph("plain", plain);
    CUgraph inner = conditional();
    launch_graph("conditional", inner);
    OK(cuGraphCreate(&parent, 0));
    CUgraphNodeParams child = { .type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = { .graph = inner } };
    OK(cuGraphAddNode(&node, parent, NULL, 0, &child));
    launch_graph("parent", parent);

    CUresult (*create)(CUgraph *, unsigned) =
        (CUresult(*)(CUgraph *, unsigned))past_the_hook("cuGraphCreate");
    CUresult (*instantiate)(CUgraphExec *, CUgraph, unsigned long long) =
        (CUresult(*)(CUgraphExec *, CUgraph, unsigned long long))past_the_hook("cuGraphInstantiateWithFlags");
    OK(create(&hidden, 0));
    add_kernels(hidden, 2);
    launch_graph("created_elsewhere", hidden);
    OK(instantiate(&exec, plain, 0));
    launch("instantiated_elsewhere", exec);
    return 0;
}
