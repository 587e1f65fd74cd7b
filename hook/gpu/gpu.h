/* The recording of the GPU's work: when each kernel, copy and set ran. A thread of the hook loads
 * libcudatrace-gpu.so (hook/cupti/), which obtains the times from CUPTI. All functions may be called while
 * nothing is recorded or requested. */
#ifndef CT_GPU_H
#define CT_GPU_H

#include "compiler.h"
#include "segment.h"

#include <stdatomic.h>
#include <stdbool.h>

/* True if a recording is due, which begins at the next call of the driver. */
extern CT_LOCAL _Atomic bool ct_gpu_wanted;
static inline bool ct_gpu_is_wanted(void)
{
    return atomic_load_explicit(&ct_gpu_wanted, memory_order_relaxed);
}

/* Makes a recording due if the settings request one. `segment` is the process's new segment. */
void ct_gpu_want(struct ct_segment *segment);
/* Begins the recording that is due. Waits until CUPTI is ready, so that the recording has the first kernel.
 * Waits at most GPU_PATIENCE_NS, because the caller may hold the loader's lock, which CUPTI needs. The caller
 * holds no lock of the hook, and its lane is not held. */
void ct_gpu_begin(void);
/* Ends the recording because the process is about to exit, after the records of all finished work. Waits at
 * most GPU_PATIENCE_NS. May be called in a signal handler. */
void ct_gpu_end(void);
/* In the child of a fork, forgets the recording. The child cannot use the parent's CUPTI. */
void ct_gpu_forget(void);

#endif
