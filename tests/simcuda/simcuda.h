/*
 * simcuda.h: the simulated driver's objects and what its files offer one another.
 *
 * A model is a function sim_<export>; sim_entries.py writes the exported function around it. Models take the
 * driver's one lock (driver_lock, or context_lock with the checks that a context needs), do their work under
 * it, and return through driver_unlock. Nothing below takes the lock unless it says so. No lock is held while
 * a program's callback runs or while a thread waits for the simulated GPU.
 *
 * What a program hands to a stream is a struct op. sim_op.c runs it at once, in the calling thread, and adds
 * the time it would take to the stream's timeline; only behind a host callback are ops kept for the driver's
 * thread. While a stream is captured, ops become nodes of a graph instead, and a graph's replay runs them
 * again.
 */
#ifndef SIMCUDA_H
#define SIMCUDA_H

#include "cuda_types.h"
#include "sim_settings.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { SIM_DRIVER_VERSION = 13000 };

/* ---- sim_handle.c: every handle is the address of an object in a slab that is never given back, so that a
 * dead or foreign handle can be told from a live one without touching freed memory. The latest freed is
 * reused first. */

struct handle {
    struct handle *next_free;
    _Atomic uint64_t generation; /* counts all handles ever made; 0 while free. Read without the lock */
};

struct slab {
    size_t object_size;
    struct chunk *chunks;
    struct handle *free;
};
#define SLAB(type)                                                                                           \
    {                                                                                                        \
        .object_size = (sizeof(type) + 15) & ~(size_t)15                                                     \
    }

void *handle_new(struct slab *slab); /* zeroed; NULL when memory is out */
void handle_free(struct slab *slab, void *object);
bool handle_alive(const struct slab *slab, const void *object);
void *handle_next(const struct slab *slab, const void *previous); /* all live ones; NULL begins and ends */

/* ---- sim_driver.c: the lock, time, and what forks need. */

void driver_lock(void);
void driver_release(void);
static inline CUresult driver_unlock(CUresult result)
{
    driver_release();
    return result;
}
void driver_wait(void);      /* for driver_broadcast(); gives the lock up meanwhile */
void driver_broadcast(void); /* something that others may wait for has changed */
void driver_before_fork(void);
void driver_after_fork_parent(void);
void driver_after_fork_child(void);
void ioctls_of_init(void); /* sim_ioctls.c: SIMCUDA_IOCTLS=1 */
void ioctls_of_allocation(void);

int64_t clock_now_ns(void);
void clock_sleep_until_ns(int64_t until_ns);

/* sim_entry.c */
void entry_initialised(void);
bool entry_is_forked(void);

/* ---- sim_context.c, sim_primary.c */

struct CUctx_st {
    struct handle handle;
    bool primary;
    CUstream legacy;           /* the stream NULL */
    unsigned blocking_streams; /* others that wait for it and it for them */
    CUresult fault;            /* once a kernel has faulted, what nearly everything returns */
};

/* Both hold the lock exactly if they return CUDA_SUCCESS. The second is for calls that a handle tells their
 * context, which driver 580 takes from threads without one too: *current may become NULL. */
CUresult context_lock(CUcontext *current);
CUresult context_lock_any(CUcontext *current);
CUresult context_current(CUcontext *current);
bool context_alive(CUcontext context);
CUresult context_new(CUcontext *context);
void context_end(CUcontext context); /* with all that it owns; context_wait() first */

/* Set in the driver's thread while it runs a program's callback, which may make no call. */
extern _Thread_local bool sim_in_callback;

/* ---- sim_device.c */
int device_attribute(int attribute);
extern uint64_t sim_device_used;

/* ---- sim_memory.c: every range of addresses that the driver knows. Device memory is the process's own. */

enum region_kind { REGION_DEVICE, REGION_HOST };

struct region {
    uintptr_t base;
    size_t size;
    enum region_kind kind;
    CUcontext context;
    CUmemoryPool pool; /* of stream-ordered memory */
    bool mapped;       /* came from mmap and not from malloc */
    unsigned nodes;    /* of graphs, that refer to it: their memory lives as long as they do */
    bool gone;         /* its context has ended; only nodes still refer to it */
};

CUresult region_new(struct region **region, CUcontext context, enum region_kind kind, size_t size);
void region_free(struct region *region);
void region_hold(struct region *region); /* for a node */
void region_drop(struct region *region);
struct region *region_at(uintptr_t address);
struct region *region_holding(uintptr_t address, size_t size); /* NULL unless all of it lies in one region */
struct region *region_based_at(uintptr_t address);
void memory_end(CUcontext context);

/* ---- sim_array.c */
struct CUarray_st {
    struct handle handle;
    CUcontext context;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    size_t element_bytes, width_bytes, height, depth;
    struct region *region;
};
CUarray array_of(CUarray array); /* NULL unless alive */
void array_end(CUcontext context);

/* ---- sim_launch.c, sim_kernel.c */
enum { KERNEL_MAX_PARAMS = 48 };

struct launch {
    CUfunction function;
    uint64_t function_generation;
    unsigned grid[3], block[3], shared_bytes;
    uint64_t values[KERNEL_MAX_PARAMS]; /* copied, of kernels whose code is known */
};
/* Known by name, or compiled for the host; with neither a launch changes nothing. */
struct kernel_code {
    size_t param_count;
    const size_t *param_bytes;
    CUresult (*run)(const uint64_t params[KERNEL_MAX_PARAMS]);
    void (*compiled)(void *const *params, const unsigned *grid, const unsigned *block);
};
const struct kernel_code *kernel_code_named(const char *name);
bool kernel_code_compiled(struct kernel_code *code, void *compiled, const char *name);
CUresult kernel_copy_params(const struct kernel_code *code, uint64_t values[KERNEL_MAX_PARAMS],
                            void **params);
CUresult kernel_run(const struct launch *launch);
CUresult launch_prepare(struct launch *launch, CUcontext context, void *function_or_kernel, void **params,
                        void **extra);
CUresult launch_check(const struct launch *launch);

/* ---- sim_op.c: what a stream can be asked to do */

enum op_kind {
    OP_EMPTY,
    OP_CONDITIONAL, /* whose bodies never run */
    OP_KERNEL,
    OP_COPY,
    OP_SET,
    OP_HOST,
    OP_RECORD,
    OP_WAIT,
    OP_ALLOC,
    OP_FREE,
    OP_GRAPH,  /* a child graph; only as a node */
    OP_REPLAY, /* of an instantiated graph; never a node */
    OP_KIND_COUNT
};

struct op {
    enum op_kind kind;
    union {
        struct launch launch;
        CUDA_MEMCPY3D copy;
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
CUresult op_submit(CUstream stream, const struct op *op); /* checks, then runs, keeps or captures */
CUgraphNodeType op_node_type(enum op_kind kind);
void op_hold(const struct op *op); /* a graph now refers to what op refers to */
void op_drop(const struct op *op);
void op_run_late(const struct op *op, CUstream stream); /* what was checked when it was submitted */
bool op_needs_thread(const struct op *op);

/* sim_worker.c: the driver's thread, which runs what stands behind host callbacks, in order. */
CUresult worker_keep(CUstream stream, const struct op *op);
void worker_after_fork(void);

/* ---- sim_copy.c */
CUresult copy_check(const CUDA_MEMCPY3D *copy);
int64_t copy_duration_ns(const CUDA_MEMCPY3D *copy);
void copy_run(const CUDA_MEMCPY3D *copy);

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
    unsigned kept; /* ops that the driver's thread has still to run */
    bool dying;    /* destroyed by the program, kept until kept is 0 */
    struct capture *capture;
    CUgraphNode *tips; /* what the next captured node comes after */
    size_t tip_count;
};

CUresult stream_of(CUstream *stream, CUcontext current); /* from what the program passed to the real one */
CUstream stream_next(const void *previous);
bool stream_is_blocking(CUstream stream); /* ordered with the legacy stream */
int64_t stream_barrier_ns(CUstream stream);
bool stream_is_held_up(CUstream stream);
void stream_wait(CUstream stream);
void stream_op_done(CUstream stream);
void stream_end(CUcontext context);
CUresult stream_new_legacy(CUcontext context);
CUresult context_wait(CUcontext context);

/* ---- sim_event.c */
struct CUevent_st {
    struct handle handle;
    CUcontext context;
    unsigned flags;
    bool recorded;
    int64_t at_ns;       /* when the recorded point is reached */
    unsigned kept;       /* records that the driver's thread has still to run */
    uint64_t capture_id; /* recorded in a capture: its id, and the nodes of that point */
    CUgraphNode *tips;
    size_t tip_count;
};
CUevent event_of(CUevent event);
void event_record_now(CUevent event, int64_t at_ns);
void event_end(CUcontext context);

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
CUresult capture_spoil(CUstream stream, CUresult result); /* an error on a captured stream ends its capture */
CUresult capture_forbids_unsafe(void); /* CUDA_SUCCESS unless some capture forbids the call */
CUresult capture_forbids_context_sync(CUcontext context);
CUresult capture_forbids_legacy(CUstream stream);
CUresult capture_record(CUevent event, CUstream stream);
CUresult capture_wait(CUstream stream, CUevent event, bool *handled);
CUresult capture_forbids_event(CUevent event);
void capture_leave(CUstream stream);

/* ---- sim_graph.c, sim_graph_node.c, sim_graph_exec.c */
struct CUgraphNode_st {
    struct handle handle;
    CUgraph graph;
    struct op op;
    CUgraphNode *after;
    size_t after_count;
    size_t place; /* scratch of whoever walks the graph */
};

struct CUgraph_st {
    struct handle handle;
    bool is_child; /* the copy that a child graph node owns */
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
    struct exec_op *ops; /* child graphs stand where their nodes stood */
    size_t op_count;
    unsigned running; /* replays that the driver's thread has still to run */
    bool dying;
};

CUgraph graph_of(CUgraph graph);
CUgraphNode node_of(CUgraphNode node);
CUresult graph_new(CUgraph *graph);
void graph_free(CUgraph graph);
CUresult graph_add(CUgraphNode *node, CUgraph graph, const struct op *op, const CUgraphNode *after,
                   size_t count);
void exec_run(CUgraphExec exec, CUstream stream);
bool exec_needs_thread(CUgraphExec exec);
void exec_hold(CUgraphExec exec);
void exec_drop(CUgraphExec exec);

/* ---- sim_module.c, sim_library.c, sim_function.c */
struct CUmod_st {
    struct handle handle;
    CUcontext context;
    CUlibrary library; /* NULL, or the library whose code this is in that context */
    void *code;        /* of an image with code of the host, the loaded object */
};

struct CUfunc_st {
    struct handle handle;
    CUmodule module;
    char *name;
    struct kernel_code code;
    int attributes[CU_FUNC_ATTRIBUTE_COUNT];
    CUkernel kernel;
};

struct CUlib_st {
    struct handle handle;
};

struct CUkern_st {
    struct handle handle;
    CUlibrary library;
    char *name;
    int attributes[CU_FUNC_ATTRIBUTE_COUNT];
};

/* ---- compiled.c */
size_t compiled_bytes(const void *image); /* of an image with code of the host; 0: it is another */
CUresult compiled_load(void **code, const void *image);
void compiled_unload(void *code);
const struct compiled_kernel *compiled_kernel_named(void *code, const char *name);

CUmodule module_of(CUmodule module);
CUmodule module_new(CUcontext context, CUlibrary library);
void module_free(CUmodule module);
void module_end(CUcontext context);
bool module_has(const char *name);
CUfunction function_of(const void *function_or_kernel, CUcontext context); /* makes a kernel's on first use */
CUfunction function_alive(CUfunction function);
CUresult function_get(CUfunction *function, CUmodule module, const char *name, CUkernel kernel);
CUfunction function_next(const void *previous);
void function_free_all(CUmodule module);
void function_default_attributes(int attributes[CU_FUNC_ATTRIBUTE_COUNT]);

#endif
