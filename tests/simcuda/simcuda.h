/* simcuda.h: shared by all files of the simulated driver: handles, the lock, contexts, memory. sim_op.h has
 * the operations of streams, sim_code.h has code, and sim_graph.h has graphs.
 *
 * A model is a function sim_<export>. sim_entries.py writes the exported function around it. Models take the
 * driver's one lock (driver_lock, or context_lock with the checks that a context needs), work under it, and
 * return through driver_unlock. Functions below do not take the lock unless documented. No lock is held while
 * a program's callback runs or while a thread waits for the simulated GPU. */
#ifndef SIMCUDA_H
#define SIMCUDA_H

#include "cuda_types.h"
#include "sim_settings.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { SIM_DRIVER_VERSION = 13000 };

/* ---- sim_handle.c: every handle is the address of an object in a slab that is never freed. A dead or
 * foreign handle can therefore be distinguished from a live one without touching freed memory. The most
 * recently freed object is reused first. */

struct handle {
    struct handle *next_free;
    _Atomic uint64_t generation; /* number of the handle, counting all handles ever made; 0 while free. Read
                                  * without the lock */
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

void *handle_new(struct slab *slab); /* returns a zeroed object, or NULL if memory is short */
void handle_free(struct slab *slab, void *object);
bool handle_alive(const struct slab *slab, const void *object);
/* Iterates over all live objects. NULL begins and ends the iteration. `previous` may already have been
 * freed. */
void *handle_next(const struct slab *slab, const void *previous);

/* ---- sim_driver.c: the lock, time, and support for forks. */

void driver_lock(void);
void driver_release(void);
static inline CUresult driver_unlock(CUresult result)
{
    driver_release();
    return result;
}
void driver_wait(void);      /* waits for driver_broadcast(); releases the lock while waiting */
void driver_broadcast(void); /* reports that a condition has changed for which other threads may be waiting */
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
    CUresult fault;            /* the result of nearly all calls after a kernel has faulted */
};

/* Both hold the lock exactly if they return CUDA_SUCCESS. The second is for calls whose handle determines the
 * context. Driver 580 accepts these from threads without a context, too: *current may become NULL. */
CUresult context_lock(CUcontext *current);
CUresult context_lock_any(CUcontext *current);
CUresult context_current(CUcontext *current);
bool context_alive(CUcontext context);
CUresult context_new(CUcontext *context);
CUresult context_wait(CUcontext context); /* waits until its streams are idle; releases the lock while
                                           * waiting */
void context_end(CUcontext context);      /* ends it and all objects that it owns; call context_wait()
                                           * first */

/* Set in the driver's thread while it runs a program's callback, which must not call the driver. */
extern _Thread_local bool sim_in_callback;

/* ---- sim_device.c */
int device_attribute(int attribute);
extern uint64_t sim_device_used;

/* ---- sim_memory.c: every address range known to the driver. Device memory is the process's own. */

enum region_kind { REGION_DEVICE, REGION_HOST };

struct region {
    uintptr_t base;
    size_t size;
    enum region_kind kind;
    CUcontext context;
    CUmemoryPool pool; /* the pool of stream-ordered memory */
    bool mapped;       /* came from mmap, not from malloc */
    unsigned nodes;    /* number of graph nodes that refer to it; the memory lives as long as they do */
    bool gone;         /* its context has ended; only nodes still refer to it */
};

CUresult region_new(struct region **region, CUcontext context, enum region_kind kind, size_t size);
void region_free(struct region *region);
void region_hold(struct region *region); /* adds a node's reference */
void region_drop(struct region *region);
struct region *region_at(uintptr_t address);
struct region *region_holding(uintptr_t address, size_t size); /* NULL unless one region contains all of the
                                                                * range */
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
