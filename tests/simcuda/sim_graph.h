/* sim_graph.h: stream captures and graphs. */
#ifndef SIMCUDA_GRAPH_H
#define SIMCUDA_GRAPH_H

#include "sim_op.h"

/* ---- sim_capture.c */
struct capture {
    struct capture *next;
    CUgraph graph;
    bool graph_is_programs; /* cuStreamBeginCaptureToGraph */
    CUstream origin;
    CUstreamCaptureMode mode;
    bool invalidated;
    uint64_t id;
    pthread_t thread;
};
CUresult capture_add(CUstream stream, const struct op *op);
CUresult capture_spoil(CUstream stream, CUresult result); /* if the stream is captured, an error invalidates
                                                           * the capture */
CUresult capture_forbids_unsafe(void);                    /* CUDA_SUCCESS, or an error if a capture forbids
                                                           * the call */
CUresult capture_forbids_context_sync(CUcontext context);
CUresult capture_forbids_legacy(CUstream stream);
CUresult capture_record(CUevent event, CUstream stream);
CUresult capture_wait(CUstream stream, CUevent event, bool *handled);
CUresult capture_forbids_event(CUevent event);
void capture_leave(CUstream stream);
/* Works like context_lock(), and also rejects calls that a capture forbids (sim_alloc.c). */
CUresult context_lock_unsafe(CUcontext *context);

/* ---- sim_graph.c, sim_graph_node.c, sim_graph_exec.c */
struct CUgraphNode_st {
    struct handle handle;
    CUgraph graph;
    struct op op;
    CUgraphNode *after;
    size_t after_count;
    size_t place; /* scratch space for walks of the graph */
};

struct CUgraph_st {
    struct handle handle;
    bool is_child; /* this graph is the copy that a child graph node owns */
    CUgraphNode *nodes;
    size_t node_count;
};

struct exec_op {
    struct op op;
    CUgraphNode node;
    uint64_t node_generation;
    bool disabled;
};

struct CUgraphExec_st {
    struct handle handle;
    struct exec_op *ops; /* include the ops of child graphs, at their nodes' places */
    size_t op_count;
    unsigned running; /* number of replays that the driver's thread still has to run */
    bool dying;
};

CUgraph graph_of(CUgraph graph);
CUgraphNode node_of(CUgraphNode node);
CUresult graph_new(CUgraph *graph);
void graph_free(CUgraph graph);
CUresult graph_add(CUgraphNode *node, CUgraph graph, const struct op *op, const CUgraphNode *after,
                   size_t count);
void exec_run(CUgraphExec exec, CUstream stream, uint64_t correlation);
bool exec_needs_thread(CUgraphExec exec);
void exec_hold(CUgraphExec exec);
void exec_drop(CUgraphExec exec);

#endif
