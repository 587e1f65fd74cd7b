/* simcuda.h: shared by all files of the simulated driver. This header declares handles, the lock, contexts
 * and memory. sim_op.h has stream operations, sim_code.h has code, and sim_graph.h has graphs.
 *
 * A model is a function sim_<export>. sim_entries.py generates the exported function around it. A model takes
 * the driver's one lock with driver_lock(), or with context_lock(), which also makes checks. The model then
 * does its work, and returns through driver_unlock(). The functions below do not take the lock unless a
 * comment mentions it. No lock is held while a program's callback runs, or while a thread waits for the
 * simulated GPU. */
#ifndef SIMCUDA_H
#define SIMCUDA_H

#include "cuda_types.h"
#include "sim_settings.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { SIM_DRIVER_VERSION = 13000 };

/* ---- sim_handle.c: every handle is the address of an object in a slab, and slabs are never freed.
 * Therefore, the driver can check whether a handle is valid without accessing freed memory. The object that
 * was freed last is reused first. */

struct handle {
    struct handle *next_free;
    _Atomic uint64_t generation; /* sequence number of this handle among all handles ever created; 0 while
                                  * free. Read without the lock */
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

void *handle_new(struct slab *slab); /* returns a zeroed object, or NULL if out of memory */
void handle_free(struct slab *slab, void *object);
bool handle_alive(const struct slab *slab, const void *object);
/* Iterates over all live objects. The iteration begins and ends with NULL. `previous` may have been freed
 * since the last step. */
void *handle_next(const struct slab *slab, const void *previous);

/* ---- sim_driver.c: the lock, time, and support for forks. */

void driver_lock(void);
void driver_release(void);
static inline CUresult driver_unlock(CUresult result)
{
    driver_release();
    return result;
}
void driver_wait(void);      /* waits for driver_broadcast(), with the lock released */
void driver_broadcast(void); /* wakes threads that may be waiting for a condition that has changed */
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
    CUstream legacy;           /* the stream that NULL means */
    unsigned blocking_streams; /* streams ordered with it */
    CUresult fault;            /* the result of nearly all calls once a kernel has faulted */
};

/* context_lock() and context_lock_any() take the lock, and still hold it when they return CUDA_SUCCESS, but
 * not when they return an error. context_lock_any() is for calls whose handle determines the context. Driver
 * 580 also accepts such calls from threads without a context, so *current may become NULL. */
CUresult context_lock(CUcontext *current);
CUresult context_lock_any(CUcontext *current);
CUresult context_current(CUcontext *current);
bool context_alive(CUcontext context);
CUresult context_new(CUcontext *context);
CUresult context_wait(CUcontext context); /* waits until the context's streams are idle, with the lock
                                           * released */
void context_end(CUcontext context);      /* destroys the context and all objects that it owns; call
                                           * context_wait() first */

/* Set in the driver's thread while it runs a program's callback, because callbacks must not call the
 * driver. */
extern _Thread_local bool sim_in_callback;

/* ---- sim_device.c */
int device_attribute(int attribute);
extern uint64_t sim_device_used;

/* ---- sim_memory.c: every address range that the driver knows. Device memory is ordinary process memory. */

enum region_kind { REGION_DEVICE, REGION_HOST };

struct region {
    uintptr_t base;
    size_t size;
    enum region_kind kind;
    CUcontext context;
    CUmemoryPool pool; /* the pool of stream-ordered memory */
    bool mapped;       /* allocated by mmap(), not by malloc() */
    unsigned nodes;    /* number of graph nodes that refer to the region, which keep its memory alive */
    bool gone;         /* the context has been destroyed; only graph nodes still refer to the region */
};

CUresult region_new(struct region **region, CUcontext context, enum region_kind kind, size_t size);
void region_free(struct region *region);
void region_hold(struct region *region); /* adds a node's reference */
void region_drop(struct region *region);
struct region *region_at(uintptr_t address);
struct region *region_holding(uintptr_t address, size_t size); /* the region that contains the whole range, or
                                                                * NULL if there is none */
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

#endif
