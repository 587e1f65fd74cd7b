/* The cheapest possible driver, so that benchmarks measure only the tracer. The duration of one function,
 * cuCtxGetFlags(), can be set. */
#include "null_driver.h"

#include "clock.h"

#define EXPORT __attribute__((visibility("default"), noinline))

static uint64_t spin_ticks;

EXPORT void bench_spin(uint64_t ticks)
{
    spin_ticks = ticks;
}

/* The driver's own functions. The exports below make them available under CUDA's names. */

static int get_current(void **context)
{
    *context = (void *)(uintptr_t)0x1000;
    return 0;
}

static int get_flags(unsigned int *flags)
{
    const uint64_t start = ct_counter_read();
    while (ct_counter_read() - start < spin_ticks)
        ;
    *flags = 0;
    return 0;
}

static int launch(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                  unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                  void *stream, void **parameters, void **extra)
{
    (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z, (void)shared_bytes;
    (void)stream, (void)parameters, (void)extra;
    return function ? 0 : 1;
}

static int copy(uint64_t destination, const void *source, size_t bytes)
{
    (void)source, (void)bytes;
    return destination ? 0 : 1;
}

static const struct bench_driver driver = { get_current, get_flags, launch, copy };

EXPORT const struct bench_driver *bench_driver(void)
{
    return &driver;
}

EXPORT int cuInit(unsigned int flags)
{
    return flags == 0 ? 0 : 1;
}

EXPORT int cuCtxGetCurrent(void **context)
{
    return get_current(context);
}

EXPORT int cuCtxGetFlags(unsigned int *flags)
{
    return get_flags(flags);
}

EXPORT int cuModuleGetFunction(void **function, void *module, const char *name)
{
    /* Returns a different handle each time. The handles are as far apart as the addresses of a real driver's
     * objects. */
    static uintptr_t next = 0x560000000000;
    *function = (void *)__atomic_fetch_add(&next, 0x1c0, __ATOMIC_RELAXED);
    return module && name ? 0 : 1;
}

EXPORT int cuLaunchKernel(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                          unsigned int block_x, unsigned int block_y, unsigned int block_z,
                          unsigned int shared_bytes, void *stream, void **parameters, void **extra)
{
    return launch(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
                  parameters, extra);
}

EXPORT int cuMemcpyHtoD_v2(uint64_t destination, const void *source, size_t bytes)
{
    return copy(destination, source, bytes);
}
