/* The recording of the GPU's work: when each kernel, copy, set or whole graph ran. A thread of the hook loads
 * libcudatrace-gpu.so (hook/cupti/), which obtains the times from CUPTI. All functions may be called
 * even while nothing is recorded or requested. */
#ifndef CT_GPU_H
#define CT_GPU_H

#include "compiler.h"
#include "segment.h"

#include <stdatomic.h>
#include <stdbool.h>

/* True from the beginning of a segment until the next call of the driver. CUPTI would load the driver into a
 * process that has not loaded it. */
extern CT_LOCAL _Atomic bool ct_gpu_is_awaiting;
static inline bool ct_gpu_awaits_driver(void)
{
    return atomic_load_explicit(&ct_gpu_is_awaiting, memory_order_relaxed);
}

/* Returns the first request of a new segment. `session_ns` is the session's request, which is used unless the
 * settings request a recording. */
uint64_t ct_gpu_first_request(uint64_t session_ns);
/* Must be called when the process has a new segment. */
void ct_gpu_await_driver(void);
/* Begins a recording if the segment requests one. The process's first recorded call of the driver waits until
 * CUPTI is ready, so that the recording has the first kernel. It waits at most CT_GPU_PATIENCE_NS, because
 * the caller may hold the loader's lock, which CUPTI needs. The caller holds no lock of the hook, and its
 * lane is not held. */
void ct_gpu_first_call(void);
/* Begins a recording if the segment has a new request for one. Waits for nothing. The same conditions hold as
 * for ct_gpu_first_call(). A recording that has begun follows further requests by itself. */
void ct_gpu_follow(struct ct_segment *segment);
/* Ends the recording because the process is about to exit, after the records of all finished work. Waits at
 * most CT_GPU_PATIENCE_NS. May be called in a signal handler. */
void ct_gpu_end(void);
/* Ends a recording for good, and waits until its thread is gone, for at most CT_GPU_PATIENCE_NS. */
void ct_gpu_quit(void);
/* Ends a recording in the same way, and keeps others from beginning until ct_gpu_open() has been called as
 * often. Then the recording begins again at a later call, unless its time is over. */
void ct_gpu_close(void);
void ct_gpu_open(void);
/* In the child of a fork, forgets the recording. The child cannot use the parent's CUPTI. */
void ct_gpu_forget(void);

#endif
