/* sim_graph_exec.c: instantiated graphs. Each instantiated graph is a flat list of ops in the order of their
 * nodes. The ops of a child graph take the place of the child graph's node. A launch is a single op of its
 * stream. The launched nodes run one after another, so their times add up. */
#include "sim_graph.h"
#include "sim_observe.h"

#include <stdlib.h>

enum { ALL_INSTANTIATE_FLAGS = 0xf };

static struct slab execs = SLAB(struct CUgraphExec_st);

static CUgraphExec exec_of(CUgraphExec exec)
{
    return handle_alive(&execs, exec) && !exec->dying ? exec : NULL;
}

static void free_exec(CUgraphExec exec)
{
    for (size_t i = 0; i < exec->op_count; i++)
        op_drop(&exec->ops[i].op);
    free(exec->ops);
    handle_free(&execs, exec);
}

void exec_hold(CUgraphExec exec)
{
    exec->running++;
}

void exec_drop(CUgraphExec exec)
{
    if (--exec->running == 0 && exec->dying)
        free_exec(exec);
}

bool exec_needs_thread(CUgraphExec exec)
{
    for (size_t i = 0; i < exec->op_count; i++)
        if (op_needs_thread(&exec->ops[i].op) && !exec->ops[i].disabled)
            return true;
    return false;
}

void exec_run(CUgraphExec exec, CUstream stream, uint64_t correlation)
{
    struct op_origin origin = { .correlation = correlation, .graph = (uint32_t)exec->handle.generation };
    const int64_t start_ns = stream->busy_until_ns; /* the launch itself has just run, in no time */
    for (size_t i = 0; i < exec->op_count; i++) {
        if (exec->ops[i].disabled)
            continue;
        struct op op = exec->ops[i].op;
        op.origin = origin;
        op.origin.node = exec->ops[i].node_generation;
        op_run_late(&op, stream);
    }
    observe_graph(&origin, stream, start_ns);
}

static CUresult flatten(CUgraphExec exec, CUgraph graph)
{
    for (size_t i = 0; i < graph->node_count; i++) {
        const CUgraphNode node = graph->nodes[i];
        if (node->op.kind == OP_GRAPH) {
            const CUresult result = flatten(exec, node->op.child);
            if (result != CUDA_SUCCESS)
                return result;
            continue;
        }
        struct exec_op *ops = realloc(exec->ops, (exec->op_count + 1) * sizeof *ops);
        if (!ops)
            return CUDA_ERROR_OUT_OF_MEMORY;
        exec->ops = ops;
        exec->ops[exec->op_count++] = (struct exec_op){
            .op = node->op,
            .node = node,
            .node_generation = node->handle.generation,
        };
        op_hold(&node->op);
    }
    return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *exec, CUgraph graph, uint64_t flags)
{
    if (!exec || !graph_of(graph) || flags & ~(uint64_t)ALL_INSTANTIATE_FLAGS)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = capture_forbids_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    CUgraphExec made = handle_new(&execs);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = flatten(made, graph);
    if (result != CUDA_SUCCESS)
        free_exec(made);
    else
        *exec = made;
    return result;
}

CUresult sim_cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    driver_lock();
    return driver_unlock(instantiate(exec, graph, flags));
}

CUresult sim_cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log,
                                   size_t log_bytes)
{
    if (error_node)
        *error_node = NULL;
    if (log && log_bytes > 0)
        *log = '\0';
    return sim_cuGraphInstantiateWithFlags(exec, graph, 0);
}

CUresult sim_cuGraphExecDestroy(CUgraphExec exec)
{
    driver_lock();
    if (!exec_of(exec))
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    exec->dying = true;
    exec_hold(exec);
    exec_drop(exec);
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    CUcontext context;
    CUresult result = context_lock_any(&context);
    if (result != CUDA_SUCCESS)
        return result;
    result = exec_of(exec) ? stream_of(&stream, context) : CUDA_ERROR_INVALID_VALUE;
    const struct op op = { .kind = OP_REPLAY, .exec = exec };
    return driver_unlock(result == CUDA_SUCCESS ? op_submit(stream, &op) : result);
}

/* Enables or disables the op that was made from the given node of the original graph. */
CUresult sim_cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled)
{
    driver_lock();
    if (exec_of(exec) && node_of(node))
        for (size_t i = 0; i < exec->op_count; i++) {
            struct exec_op *at = &exec->ops[i];
            if (at->node != node || at->node_generation != node->handle.generation)
                continue;
            if (at->op.kind != OP_KERNEL && at->op.kind != OP_SET && at->op.kind != OP_COPY)
                break;
            at->disabled = enabled == 0;
            return driver_unlock(CUDA_SUCCESS);
        }
    return driver_unlock(CUDA_ERROR_INVALID_VALUE);
}
