/* sim_graph_edge.c: the edges of graphs. A node holds the nodes that it comes after; no edge carries data. */
#include "simcuda.h"

#include <stdlib.h>
#include <string.h>

static bool comes_after(CUgraphNode node, CUgraphNode other)
{
    for (size_t i = 0; i < node->after_count; i++)
        if (node->after[i] == other)
            return true;
    return false;
}

CUresult sim_cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
    driver_lock();
    if (!graph_of(graph) || !count || !from != !to)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    size_t edges = 0;
    for (size_t i = 0; i < graph->node_count; i++)
        for (size_t j = 0; j < graph->nodes[i]->after_count; j++, edges++)
            if (from && edges < *count) {
                from[edges] = graph->nodes[i]->after[j];
                to[edges] = graph->nodes[i];
            }
    for (size_t i = edges; from && i < *count; i++)
        from[i] = to[i] = NULL;
    if (!from || *count > edges)
        *count = edges;
    return driver_unlock(CUDA_SUCCESS);
}

static void clear_edge_data(CUgraphEdgeData *data, const size_t *count)
{
    if (data && count)
        memset(data, 0, *count * sizeof *data);
}

CUresult sim_cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                                size_t *count)
{
    const CUresult result = sim_cuGraphGetEdges(graph, from, to, count);
    if (result == CUDA_SUCCESS)
        clear_edge_data(from ? data : NULL, count);
    return result;
}

CUresult sim_cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *out, size_t *count)
{
    driver_lock();
    if (!node_of(node))
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    return driver_unlock(graph_list(node->after, node->after_count, out, count));
}

CUresult sim_cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *data,
                                           size_t *count)
{
    const CUresult result = sim_cuGraphNodeGetDependencies(node, out, count);
    if (result == CUDA_SUCCESS)
        clear_edge_data(out ? data : NULL, count);
    return result;
}

CUresult sim_cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *out, size_t *count)
{
    driver_lock();
    if (!node_of(node))
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    const CUgraph graph = node->graph;
    CUgraphNode *later = malloc((graph->node_count + 1) * sizeof *later);
    if (!later)
        return driver_unlock(CUDA_ERROR_OUT_OF_MEMORY);
    size_t later_count = 0;
    for (size_t i = 0; i < graph->node_count; i++)
        if (comes_after(graph->nodes[i], node))
            later[later_count++] = graph->nodes[i];
    const CUresult result = graph_list(later, later_count, out, count);
    free(later);
    return driver_unlock(result);
}

CUresult sim_cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *data,
                                             size_t *count)
{
    const CUresult result = sim_cuGraphNodeGetDependentNodes(node, out, count);
    if (result == CUDA_SUCCESS)
        clear_edge_data(out ? data : NULL, count);
    return result;
}

static bool are_of(CUgraph graph, const CUgraphNode *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!node_of(nodes[i]) || nodes[i]->graph != graph)
            return false;
    return true;
}

/* A circle is accepted here and refused when the graph is instantiated, as by driver 580. */
CUresult sim_cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                    size_t count)
{
    driver_lock();
    if (!graph_of(graph) || ((!from || !to) && count > 0) || !are_of(graph, from, count) ||
        !are_of(graph, to, count))
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < count; i++) {
        const CUgraphNode node = to[i];
        if (comes_after(node, from[i]))
            return driver_unlock(CUDA_ERROR_INVALID_VALUE);
        CUgraphNode *after = realloc(node->after, (node->after_count + 1) * sizeof *after);
        if (!after)
            return driver_unlock(CUDA_ERROR_OUT_OF_MEMORY);
        node->after = after;
        node->after[node->after_count++] = from[i];
    }
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                       const CUgraphEdgeData *data, size_t count)
{
    (void)data;
    return sim_cuGraphAddDependencies(graph, from, to, count);
}

CUresult sim_cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                       size_t count)
{
    driver_lock();
    if (!graph_of(graph) || ((!from || !to) && count > 0) || !are_of(graph, from, count) ||
        !are_of(graph, to, count))
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < count; i++)
        if (!comes_after(to[i], from[i]))
            return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < count; i++) {
        size_t left = 0;
        for (size_t j = 0; j < to[i]->after_count; j++)
            if (to[i]->after[j] != from[i])
                to[i]->after[left++] = to[i]->after[j];
        to[i]->after_count = left;
    }
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                          const CUgraphEdgeData *data, size_t count)
{
    (void)data;
    return sim_cuGraphRemoveDependencies(graph, from, to, count);
}
