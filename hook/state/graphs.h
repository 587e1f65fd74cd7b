/* Keeps track of graph nodes. Queries to the driver would be additional calls, which the program never made,
 * and which are not allowed during a capture. Any thread may call these functions. They do nothing in a
 * signal handler that interrupted any of them on the same thread. */
#ifndef CT_GRAPHS_H
#define CT_GRAPHS_H

#include "compiler.h"
#include "payload.h"

#include <stdatomic.h>
#include <stdbool.h>

/* ---- graphs and executable graphs, by handle ---- */

/* Notes a new graph without nodes, and forgets any earlier graph with the same handle. */
void ct_graphs_create(uint64_t graph);
/* Gives `handle`, a clone or an executable graph, the nodes that `original` currently has. */
void ct_graphs_copy(uint64_t handle, uint64_t original);
/* Forgets a graph that was destroyed by a call that began at `began` (ct_now()). Does nothing if the handle
 * was assigned after `began`, since the graph then belongs to another thread. */
void ct_graphs_destroy(uint64_t handle, uint64_t began);
/* Notes that `node` was added to `graph`. `child` is the graph inside a node of kind CT_NODE_GRAPH. */
void ct_graphs_add(uint64_t graph, uint64_t node, enum ct_node_kind kind, uint64_t child);
/* Notes a node's kind, as reported to the program by the driver. The node may be the result of a capture. */
void ct_graphs_node_is(uint64_t node, enum ct_node_kind kind);
void ct_graphs_remove(uint64_t node);
/* Notes whether a node is enabled in the executable graph `exec`. A disabled node does not run. */
void ct_graphs_enable(uint64_t exec, uint64_t node, bool enabled);
/* Returns the number of nodes of each kind, or zeros for an unknown handle. Sets *all to whether the counts
 * include all nodes. A conditional node counts as one node. */
struct ct_graph_nodes ct_graphs_nodes(uint64_t handle, bool *all);

/* ---- stream capture ---- */

/* `stream` is a handle. The legacy and per-thread streams have the special handles 1 and 2. */
/* The number of captures in progress. While it is 0, which is nearly always, nothing is looked up. */
extern CT_LOCAL _Atomic int32_t ct_captures;

static inline bool ct_capturing(void)
{
    return atomic_load_explicit(&ct_captures, memory_order_relaxed) > 0;
}

/* Begins a capture of `stream` into `graph`, or into a new graph if `graph` is 0. */
void ct_capture_begin(uint64_t stream, uint64_t graph);
/* Ends the capture that began on `stream`. `graph` is the captured graph, or 0 if the capture failed. */
void ct_capture_end(uint64_t stream, uint64_t graph);
/* Notes the graph into which `stream` is being captured, as reported to the program by the driver. */
void ct_capture_graph(uint64_t stream, uint64_t graph);
bool ct_capture_active(uint64_t stream);
/* Adds the `count` graph nodes into which a captured call on `stream` has turned. */
void ct_capture_add(uint64_t stream, enum ct_node_kind kind, uint32_t count);
/* An event recorded on a captured stream extends the capture to the streams that wait for it. */
void ct_capture_record(uint64_t stream, uint64_t event);
void ct_capture_wait(uint64_t stream, uint64_t event);

#endif
