/*
 * sim_graph_exec.c: instantiated graphs: a flat list of ops in an order that keeps the edges, with the ops of
 * child graphs in their nodes' places. A launch is one op of its stream; its nodes take their times one after
 * another.
 */
#include "simcuda.h"

#include <stdlib.h>
#include <string.h>

enum { ALL_INSTANTIATE_FLAGS = 0xf, UPDATE_ERROR_TOPOLOGY_CHANGED = 2 };

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

void exec_run(CUgraphExec exec, CUstream stream)
{
    for (size_t i = 0; i < exec->op_count; i++)
        if (!exec->ops[i].disabled)
            op_run_late(&exec->ops[i].op, stream);
}

static CUresult flatten(CUgraphExec exec, CUgraph graph)
{
    CUresult result = CUDA_SUCCESS;
    CUgraphNode *order = malloc((graph->node_count + 1) * sizeof *order);
    struct exec_op *ops = realloc(exec->ops, (exec->op_count + graph->node_count + 1) * sizeof *ops);
    if (ops)
        exec->ops = ops;
    if (!order || !ops)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    else if (!graph_sort(graph, order))
        result = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < graph->node_count && result == CUDA_SUCCESS; i++) {
        if (order[i]->op.kind == OP_GRAPH) {
            result = flatten(exec, order[i]->op.child);
            /* The child's ops took room that was meant for this graph's. */
            ops = realloc(exec->ops, (exec->op_count + graph->node_count + 1) * sizeof *ops);
            if (ops)
                exec->ops = ops;
            else
                result = CUDA_ERROR_OUT_OF_MEMORY;
            continue;
        }
        exec->ops[exec->op_count++] = (struct exec_op){
            .op = order[i]->op,
            .node = order[i],
            .node_generation = order[i]->handle.generation,
        };
        op_hold(&order[i]->op);
    }
    free(order);
    return result;
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
    made->flags = flags;
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

CUresult sim_cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log,
                                size_t log_bytes)
{
    return sim_cuGraphInstantiate_v2(exec, graph, error_node, log, log_bytes);
}

CUresult sim_cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                          CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    const CUresult result = instantiate(exec, graph, params->flags);
    params->hErrNode_out = NULL;
    params->result_out = result != CUDA_SUCCESS; /* CUDA_GRAPH_INSTANTIATE_ERROR is 1 */
    return driver_unlock(result);
}

CUresult sim_cuGraphExecGetFlags(CUgraphExec exec, uint64_t *flags)
{
    driver_lock();
    if (!flags || !exec_of(exec))
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    *flags = exec->flags;
    return driver_unlock(CUDA_SUCCESS);
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

static CUresult lock_launch(CUgraphExec exec, CUstream *stream)
{
    CUcontext context;
    CUresult result = context_lock_any(&context);
    if (result != CUDA_SUCCESS)
        return result;
    result = exec_of(exec) ? stream_of(stream, context) : CUDA_ERROR_INVALID_VALUE;
    return result == CUDA_SUCCESS ? result : driver_unlock(result);
}

CUresult sim_cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    const CUresult result = lock_launch(exec, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    const struct op op = { .kind = OP_REPLAY, .exec = exec };
    return driver_unlock(op_submit(stream, &op));
}

CUresult sim_cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    const CUresult result = lock_launch(exec, &stream);
    return result != CUDA_SUCCESS ? result : driver_unlock(CUDA_SUCCESS);
}

/* ---- Changing an instantiated graph's ops, found by the nodes they came from. */

static struct exec_op *lock_exec_op(CUgraphExec exec, CUgraphNode node)
{
    driver_lock();
    if (exec_of(exec) && node_of(node))
        for (size_t i = 0; i < exec->op_count; i++)
            if (exec->ops[i].node == node && exec->ops[i].node_generation == node->handle.generation)
                return &exec->ops[i];
    driver_release();
    return NULL;
}

static CUresult change(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams *params)
{
    struct op op;
    struct exec_op *at = lock_exec_op(exec, node);
    if (!at)
        return CUDA_ERROR_INVALID_VALUE;
    if (op_node_type(at->op.kind) != params->type || at->op.kind == OP_ALLOC || at->op.kind == OP_FREE)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    const CUresult result = graph_node_op(&op, params);
    if (result == CUDA_SUCCESS)
        at->op = op;
    return driver_unlock(result);
}

CUresult sim_cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params)
{
    return params ? change(exec, node, params) : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                               const CUDA_KERNEL_NODE_PARAMS *kernel)
{
    if (!kernel)
        return CUDA_ERROR_INVALID_VALUE;
    const CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = *kernel };
    return change(exec, node, &params);
}

CUresult sim_cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_KERNEL_NODE_PARAMS_v1 *kernel)
{
    if (!kernel)
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_KERNEL };
    memcpy(&params.kernel, kernel, sizeof *kernel); /* the newer version only adds fields at the end */
    return change(exec, node, &params);
}

CUresult sim_cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy,
                                            CUcontext context)
{
    (void)context;
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;
    const CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_MEMCPY, .memcpy = { .copyParams = *copy } };
    return change(exec, node, &params);
}

CUresult sim_cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_MEMSET_NODE_PARAMS *set, CUcontext context)
{
    (void)context;
    if (!set)
        return CUDA_ERROR_INVALID_VALUE;
    const CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_MEMSET, .memset = *set };
    return change(exec, node, &params);
}

CUresult sim_cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                          const CUDA_HOST_NODE_PARAMS *host)
{
    if (!host)
        return CUDA_ERROR_INVALID_VALUE;
    const CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_HOST, .host = *host };
    return change(exec, node, &params);
}

CUresult sim_cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
    const CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = event };
    return change(exec, node, &params);
}

CUresult sim_cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
    const CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = event };
    return change(exec, node, &params);
}

CUresult sim_cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled)
{
    struct exec_op *at = lock_exec_op(exec, node);
    if (!at)
        return CUDA_ERROR_INVALID_VALUE;
    if (at->op.kind != OP_KERNEL && at->op.kind != OP_SET && at->op.kind != OP_COPY)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    at->disabled = enabled == 0;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int *enabled)
{
    const struct exec_op *at = enabled ? lock_exec_op(exec, node) : NULL;
    if (!at)
        return CUDA_ERROR_INVALID_VALUE;
    *enabled = !at->disabled;
    return driver_unlock(CUDA_SUCCESS);
}

/* The new graph must have the same nodes in the same order; then each op takes over the new one's parameters.
 */
static CUresult update(CUgraphExec exec, CUgraph graph)
{
    CUgraphExec fresh;
    CUresult result = instantiate(&fresh, graph, exec->flags);
    if (result != CUDA_SUCCESS)
        return result;
    if (fresh->op_count != exec->op_count)
        result = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    for (size_t i = 0; result == CUDA_SUCCESS && i < fresh->op_count; i++)
        if (fresh->ops[i].op.kind != exec->ops[i].op.kind)
            result = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    for (size_t i = 0; result == CUDA_SUCCESS && i < fresh->op_count; i++) {
        const struct op old = exec->ops[i].op;
        exec->ops[i].op = fresh->ops[i].op;
        fresh->ops[i].op = old;
    }
    free_exec(fresh);
    return result;
}

CUresult sim_cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
    driver_lock();
    if (!info || !exec_of(exec) || !graph_of(graph))
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    const CUresult result = update(exec, graph);
    *info = (CUgraphExecUpdateResultInfo){
        .result = result == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE ? UPDATE_ERROR_TOPOLOGY_CHANGED
                                                                 : result != CUDA_SUCCESS,
    };
    return driver_unlock(result);
}

CUresult sim_cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *error_node, int *update_result)
{
    CUgraphExecUpdateResultInfo info = { 0 };
    const CUresult result = sim_cuGraphExecUpdate_v2(exec, graph, &info);
    if (error_node)
        *error_node = NULL;
    if (update_result)
        *update_result = info.result;
    return result;
}
