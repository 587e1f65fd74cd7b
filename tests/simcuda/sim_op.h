/* sim_op.h: stream operations (ops), and the streams and events themselves.
 *
 * A program submits a struct op to a stream. sim_op.c runs the op immediately in the calling thread, and adds
 * its duration to the stream's timeline. Only ops that follow a host callback are queued for the driver's
 * thread. While a stream is captured, its ops become nodes of a graph instead of being run, and each replay
 * of the graph runs them. */
#ifndef SIMCUDA_OP_H
#define SIMCUDA_OP_H

#include "sim_code.h"

/* ---- sim_op.c: the operations of a stream */

enum op_kind {
    OP_EMPTY,
    OP_CONDITIONAL, /* its bodies never run */
    OP_KERNEL,
    OP_COPY,
    OP_SET,
    OP_HOST,
    OP_RECORD,
    OP_WAIT,
    OP_ALLOC,
    OP_FREE,
    OP_GRAPH,  /* a child graph, which occurs only as a node */
    OP_REPLAY, /* a launch of an instantiated graph, which is never a node */
    OP_KIND_COUNT
};

/* The source or the destination of a copy, as the program described it. */
struct side {
    CUmemorytype type;
    uintptr_t address;
    CUarray array;
    size_t x, y, z, pitch, height; /* x and pitch in bytes */
};

/* The call that submitted an op, for the observer (sim_observe.h). All fields are 0 while the driver is not
 * observed. */
struct op_origin {
    uint64_t correlation;
    uint64_t node; /* of an op that ran in a graph */
    uint32_t graph;
};

struct op {
    enum op_kind kind;
    struct op_origin origin;
    union {
        struct launch launch;
        struct copy {
            struct side from, to;
            size_t bytes, height, depth; /* bytes per row, number of rows, number of slices */
        } copy;
        struct set {
            CUdeviceptr at;
            size_t count;
            uint8_t value;
        } set;
        CUDA_HOST_NODE_PARAMS host;
        struct {
            CUevent event;
            uint64_t generation;
        } event;
        struct region *region; /* OP_ALLOC */
        CUdeviceptr address;   /* OP_FREE */
        CUgraph child;
        CUgraphExec exec;
    };
};

CUresult op_check(const struct op *op);
CUresult op_submit(CUstream stream, const struct op *op); /* checks the op, then runs, queues or captures
                                                           * it */
CUgraphNodeType op_node_type(enum op_kind kind);
void op_hold(const struct op *op); /* a graph now holds references to the op's objects */
void op_drop(const struct op *op);
void op_run_late(const struct op *op, CUstream stream); /* runs an op that was queued earlier, if it is still
                                                         * valid */
bool op_needs_thread(const struct op *op);

/* sim_worker.c: the driver's thread, which runs host callbacks and the ops that follow them, in order. */
CUresult worker_keep(CUstream stream, const struct op *op);
void worker_after_fork(void);

/* ---- sim_copy.c */
bool copy_is_empty(const struct copy *copy);
CUresult copy_check(const struct copy *copy);
int64_t copy_duration_ns(const struct copy *copy);
void copy_run(const struct copy *copy);

/* ---- sim_set.c */
CUresult set_check(const struct set *set);
void set_run(const struct set *set);

/* ---- sim_stream.c */
enum stream_kind { STREAM_LEGACY, STREAM_THREAD, STREAM_BLOCKING, STREAM_NON_BLOCKING };

struct CUstream_st {
    struct handle handle;
    CUcontext context;
    enum stream_kind kind;
    int64_t busy_until_ns;
    unsigned kept; /* number of ops that the driver's thread still has to run */
    bool dying;    /* destroyed by the program, but kept until `kept` is 0 */
    struct capture *capture;
    CUgraphNode *tips; /* the nodes that the next captured node will depend on */
    size_t tip_count;
};

CUresult stream_of(CUstream *stream, CUcontext current); /* converts a program's handle to the stream that it
                                                          * denotes */
CUresult stream_lock(CUstream *stream); /* like stream_of(), but also takes the lock if it returns
                                         * CUDA_SUCCESS */
CUstream stream_next(const void *previous);
bool stream_is_blocking(CUstream stream); /* ordered with the legacy stream */
int64_t stream_barrier_ns(CUstream stream);
bool stream_is_held_up(CUstream stream);
void stream_wait(CUstream stream);
void stream_op_done(CUstream stream);
void stream_end(CUcontext context);
CUresult stream_new_legacy(CUcontext context);

/* ---- sim_event.c */
struct CUevent_st {
    struct handle handle;
    CUcontext context;
    unsigned flags;
    bool recorded;
    int64_t at_ns;       /* when the recorded point is reached */
    bool spans_context;  /* recorded in all streams of its context; `at_ns` is the latest point */
    unsigned kept;       /* number of records that the driver's thread still has to run */
    uint64_t capture_id; /* id of the capture that the event was recorded in, or 0; `tips` are the nodes of
                          * the recorded point */
    CUgraphNode *tips;
    size_t tip_count;
};
CUevent event_of(CUevent event);
void event_record_now(CUevent event, int64_t at_ns);
void event_end(CUcontext context);

#endif
