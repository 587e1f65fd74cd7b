/* sim_graph.c: whole graphs, which can be created, copied, listed and destroyed. sim_graph_node.c has the
 * nodes, and sim_graph_exec.c the launchable graphs. Each node lists the nodes that it depends on. A node
 * depends only on nodes that were created earlier, so the order of creation is also a valid order of
 * execution. */
#include "sim_graph.h"

#include <stdlib.h>

static struct slab graphs = SLAB(struct CUgraph_st);
static struct slab nodes = SLAB(struct CUgraphNode_st);

CUgraph graph_of(CUgraph graph)
{
    return handle_alive(&graphs, graph) ? graph : NULL;
}

CUgraphNode node_of(CUgraphNode node)
{
    return handle_alive(&nodes, node) ? node : NULL;
}

CUresult graph_new(CUgraph *graph)
{
    *graph = handle_new(&graphs);
    return *graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void free_node(CUgraphNode node)
{
    op_drop(&node->op);
    free(node->after);
    handle_free(&nodes, node);
}

void graph_free(CUgraph graph)
{
    for (size_t i = 0; i < graph->node_count; i++)
        free_node(graph->nodes[i]);
    free(graph->nodes);
    handle_free(&graphs, graph);
}

static CUresult copy_graph(CUgraph *copy, CUgraph graph);

/* Copies an op. The copy holds its own references to objects. */
static CUresult copy_op(struct op *copy, const struct op *op)
{
    *copy = *op;
    if (op->kind == OP_GRAPH) {
        const CUresult result = copy_graph(&copy->child, op->child);
        if (result != CUDA_SUCCESS)
            return result;
        copy->child->is_child = true;
    }
    op_hold(copy);
    return CUDA_SUCCESS;
}

CUresult graph_add(CUgraphNode *node, CUgraph graph, const struct op *op, const CUgraphNode *after,
                   size_t count)
{
    if (!after && count > 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!node_of(after[i]) || after[i]->graph != graph)
            return CUDA_ERROR_INVALID_VALUE;
    CUgraphNode *grown = realloc(graph->nodes, (graph->node_count + 1) * sizeof *grown);
    if (!grown)
        return CUDA_ERROR_OUT_OF_MEMORY;
    graph->nodes = grown;
    CUgraphNode made = handle_new(&nodes);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->after = malloc((count ? count : 1) * sizeof *made->after);
    CUresult result = made->after ? copy_op(&made->op, op) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS) {
        free(made->after);
        handle_free(&nodes, made);
        return result;
    }
    made->graph = graph;
    for (size_t i = 0; i < count; i++)
        made->after[made->after_count++] = after[i];
    graph->nodes[graph->node_count++] = made;
    *node = made;
    return CUDA_SUCCESS;
}

static CUresult copy_graph(CUgraph *copy, CUgraph graph)
{
    CUgraph made;
    CUresult result = graph_new(&made);
    if (result != CUDA_SUCCESS)
        return result;
    for (size_t i = 0; i < graph->node_count && result == CUDA_SUCCESS; i++) {
        CUgraphNode node;
        graph->nodes[i]->place = i;
        result = graph_add(&node, made, &graph->nodes[i]->op, NULL, 0);
    }
    for (size_t i = 0; i < graph->node_count && result == CUDA_SUCCESS; i++) {
        const CUgraphNode from = graph->nodes[i];
        CUgraphNode *after = realloc(made->nodes[i]->after, (from->after_count + 1) * sizeof *after);
        if (!after) {
            result = CUDA_ERROR_OUT_OF_MEMORY;
            break;
        }
        made->nodes[i]->after = after;
        made->nodes[i]->after_count = from->after_count;
        for (size_t j = 0; j < from->after_count; j++)
            after[j] = made->nodes[from->after[j]->place];
    }
    if (result != CUDA_SUCCESS) {
        graph_free(made);
        return result;
    }
    *copy = made;
    return CUDA_SUCCESS;
}

CUresult sim_cuGraphCreate(CUgraph *graph, unsigned int flags)
{
    if (!graph || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    return driver_unlock(graph_new(graph));
}

CUresult sim_cuGraphDestroy(CUgraph graph)
{
    driver_lock();
    if (!graph_of(graph) || graph->is_child)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    graph_free(graph);
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuGraphClone(CUgraph *clone, CUgraph graph)
{
    driver_lock();
    if (!clone || !graph_of(graph))
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    return driver_unlock(copy_graph(clone, graph));
}

/* If `out` is NULL, only the number of nodes is returned. Entries of `out` beyond the number of nodes are
 * filled with NULL. */
CUresult sim_cuGraphGetNodes(CUgraph graph, CUgraphNode *out, size_t *count)
{
    driver_lock();
    if (!graph_of(graph) || !count)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; out && i < *count; i++)
        out[i] = i < graph->node_count ? graph->nodes[i] : NULL;
    if (!out || *count > graph->node_count)
        *count = graph->node_count;
    return driver_unlock(CUDA_SUCCESS);
}

/* A node's edges are removed together with the node. */
CUresult sim_cuGraphDestroyNode(CUgraphNode node)
{
    driver_lock();
    if (!node_of(node))
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    const CUgraph graph = node->graph;
    size_t kept = 0;
    for (size_t i = 0; i < graph->node_count; i++) {
        const CUgraphNode other = graph->nodes[i];
        size_t left = 0;
        for (size_t j = 0; j < other->after_count; j++)
            if (other->after[j] != node)
                other->after[left++] = other->after[j];
        other->after_count = left;
        if (other != node)
            graph->nodes[kept++] = other;
    }
    graph->node_count = kept;
    free_node(node);
    return driver_unlock(CUDA_SUCCESS);
}
