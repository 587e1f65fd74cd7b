/* Declares the CUDA functions of the benchmarks' driver, and the functions that only this driver has.
 * bench_driver() returns pointers to the driver's functions themselves, which bypass every stub. One function
 * has several copies, for peers that slow down all callers of a function. Used by hook_cost.c and peers.c. */
#ifndef BENCH_NULL_DRIVER_H
#define BENCH_NULL_DRIVER_H

#include <stddef.h>
#include <stdint.h>

int cuInit(unsigned int flags);
int cuCtxGetCurrent(void **context);
int cuCtxGetFlags(unsigned int *flags);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuLaunchKernel(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                   unsigned int block_x, unsigned int block_y, unsigned int block_z,
                   unsigned int shared_bytes, void *stream, void **parameters, void **extra);
int cuMemcpyHtoD_v2(uint64_t destination, const void *source, size_t bytes);

struct bench_driver {
    int (*get_current)(void **context);
    int (*get_flags)(unsigned int *flags);
    int (*launch)(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                  unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                  void *stream, void **parameters, void **extra);
    int (*copy)(uint64_t destination, const void *source, size_t bytes);
};
const struct bench_driver *bench_driver(void);

/* Sets the duration of later calls to get_flags, in ticks of the counter. */
void bench_spin(uint64_t ticks);

/* Copies of get_current, one for each kind of probe (probed.c). */
int bench_probed_tracefs(void **context);
int bench_probed_bpftrace(void **context);

#endif
