/* The cheapest driver there can be: what is measured on it is the tracer. */
#include <stdint.h>

int cuInit(unsigned int flags);
int cuCtxGetCurrent(void **context);
int cuCtxGetDevice(int *device);
int (*bench_bare(void))(void **context);

__attribute__((visibility("default"), noinline)) int cuInit(unsigned int flags)
{
    return flags == 0 ? 0 : 1;
}

__attribute__((visibility("default"), noinline)) int cuCtxGetCurrent(void **context)
{
    *context = (void *)(uintptr_t)0x1000;
    return 0;
}

/* The function itself, past every stub. */
static int bare(void **context)
{
    *context = (void *)(uintptr_t)0x1000;
    return 0;
}

__attribute__((visibility("default"))) int (*bench_bare(void))(void **context)
{
    return bare;
}
