/* The nodes of graphs, by bookkeeping: the driver could be asked, but its answers would be calls that the
 * program never made, and during a capture they are not allowed. All functions may be called from any thread;
 * a signal handler that interrupted one of them on its own thread learns nothing. */
#ifndef CT_GRAPHS_H
#define CT_GRAPHS_H

#include "compiler.h"
#include "payload.h"

#include <stdatomic.h>
#include <stdbool.h>

/* ---- graphs and executable graphs, by handle ---- */

/* A graph without nodes; whatever the handle stood for before is forgotten. */
void ct_graphs_create(uint64_t graph);
/* The handle stands for what `original` consists of now: a clone, or an executable graph. */
void ct_graphs_copy(uint64_t handle, uint64_t original);
/* Forgets the graph for a call that began at `began` (ct_now()): what the handle stands for since then is
 * another thread's. */
void ct_graphs_destroy(uint64_t handle, uint64_t began);
/* `node` was added; `child` is the graph inside a node of kind CT_NODE_GRAPH. */
void ct_graphs_add(uint64_t graph, uint64_t node, enum ct_node_kind kind, uint64_t child);
/* The program was told the kind of a node, perhaps one that was captured. */
void ct_graphs_node_is(uint64_t node, enum ct_node_kind kind);
void ct_graphs_remove(uint64_t node);
/* A node that is switched off does not run in this executable graph. */
void ct_graphs_enable(uint64_t exec, uint64_t node, bool enabled);
/* Zeros for a handle that is not known. *all: whether these are all that it has, a conditional node being
 * one. */
struct ct_graph_nodes ct_graphs_nodes(uint64_t handle, bool *all);

/* ---- stream capture ---- */

/* Streams are named by `stream`, and the legacy and per-thread ones by their special handles 1 and 2. */
/* Captures that go on: while it is 0, as nearly always, nothing is looked up. */
extern CT_LOCAL _Atomic int32_t ct_captures;

static inline bool ct_capturing(void)
{
    return atomic_load_explicit(&ct_captures, memory_order_relaxed) > 0;
}

/* Begins the capture of `stream` into `graph`, 0 for a new one. */
void ct_capture_begin(uint64_t stream, uint64_t graph);
/* Ends the capture that began on `stream`: its graph is `graph`, 0 when it failed. */
void ct_capture_end(uint64_t stream, uint64_t graph);
/* The program was told the graph that `stream` is captured into. */
void ct_capture_graph(uint64_t stream, uint64_t graph);
bool ct_capture_active(uint64_t stream);
/* Adds what a call on `stream` was captured as. */
void ct_capture_add(uint64_t stream, enum ct_node_kind kind, uint32_t count);
/* An event recorded on a captured stream takes the capture along to the streams that wait for it. */
void ct_capture_record(uint64_t stream, uint64_t event);
void ct_capture_wait(uint64_t stream, uint64_t event);

#endif
