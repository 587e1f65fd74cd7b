/* Implements the runtime functions that have effects, using the driver that the process finds. As in
 * libcudart 11.3 and newer, the driver is loaded with dlopen(). dlsym() is used only to find
 * cuGetProcAddress_v2, which then finds all other functions. */
#include "simcudart.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ERROR_INITIALIZATION = 3, ERROR_INSUFFICIENT_DRIVER = 35, ERROR_INVALID_RESOURCE_HANDLE = 400 };

/* The driver functions that the simulated runtime uses: symbol, version, parameters. */
#define FUNCTIONS(F)                                                                                         \
    F(cuInit, 2000, (uint32_t))                                                                              \
    F(cuDriverGetVersion, 2020, (int *))                                                                     \
    F(cuDeviceGet, 2000, (int *, int))                                                                       \
    F(cuDeviceGetCount, 2000, (int *))                                                                       \
    F(cuDevicePrimaryCtxRetain, 7000, (void **, int))                                                        \
    F(cuCtxGetCurrent, 4000, (void **))                                                                      \
    F(cuCtxSetCurrent, 4000, (void *))                                                                       \
    F(cuCtxSynchronize, 2000, (void))                                                                        \
    F(cuMemAlloc, 3020, (void *, uint64_t))                                                                  \
    F(cuMemFree, 3020, (uint64_t))                                                                           \
    F(cuMemAllocAsync, 11020, (void *, uint64_t, void *))                                                    \
    F(cuMemFreeAsync, 11020, (uint64_t, void *))                                                             \
    F(cuMemcpy, 4000, (uint64_t, uint64_t, uint64_t))                                                        \
    F(cuMemcpyAsync, 4000, (uint64_t, uint64_t, uint64_t, void *))                                           \
    F(cuMemsetD8, 3020, (uint64_t, uint8_t, uint64_t))                                                       \
    F(cuMemsetD8Async, 3020, (uint64_t, uint8_t, uint64_t, void *))                                          \
    F(cuStreamCreate, 2000, (void *, uint32_t))                                                              \
    F(cuStreamSynchronize, 2000, (void *))                                                                   \
    F(cuStreamDestroy, 4000, (void *))                                                                       \
    F(cuStreamWaitEvent, 3020, (void *, void *, uint32_t))                                                   \
    F(cuEventCreate, 2000, (void *, uint32_t))                                                               \
    F(cuEventRecord, 2000, (void *, void *))                                                                 \
    F(cuEventSynchronize, 2000, (void *))                                                                    \
    F(cuEventElapsedTime, 2000, (void *, void *, void *))                                                    \
    F(cuEventDestroy, 4000, (void *))                                                                        \
    F(cuModuleLoadData, 2000, (void **, const void *))                                                       \
    F(cuModuleGetFunction, 2000, (void **, void *, const char *))                                            \
    F(cuLaunchKernel, 4000,                                                                                  \
      (void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, void *, void **,        \
       void **))

typedef int32_t get_function(const char *symbol, void **function, int version, uint64_t flags, int *status);

static struct {
    get_function *get;
    void *context, *module;
#define F(name, version, parameters) int32_t(*name) parameters;
    FUNCTIONS(F)
#undef F
} cu;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int32_t start_status;
static _Thread_local int32_t last_error;

static void start(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    cu.get = driver ? (get_function *)(uintptr_t)dlsym(driver, "cuGetProcAddress_v2") : NULL;
    start_status = ERROR_INSUFFICIENT_DRIVER;
    if (!cu.get)
        return;
    void *function;
#define F(name, version, parameters)                                                                         \
    function = NULL;                                                                                         \
    if (cu.get(#name, &function, version, 0, NULL) != 0 || !function)                                        \
        return;                                                                                              \
    cu.name = (int32_t(*) parameters)(uintptr_t)function;
    FUNCTIONS(F)
#undef F
    start_status = cu.cuInit(0);
    if (start_status == 0)
        start_status = cu.cuDevicePrimaryCtxRetain(&cu.context, 0);
}

/* Loads the driver, and makes the primary context current if no context is current. Every function that needs
 * a context calls this first. */
static int32_t ready(void)
{
    pthread_once(&once, start);
    void *current = NULL;
    if (start_status == 0 && cu.cuCtxGetCurrent(&current) == 0 && !current)
        return cu.cuCtxSetCurrent(cu.context);
    return start_status;
}

static int32_t done(int32_t status)
{
    if (status != 0)
        last_error = status;
    return status;
}

#define DO(call)                                                                                             \
    do {                                                                                                     \
        const int32_t status_ = ready();                                                                     \
        return done(status_ != 0 ? status_ : cu.call);                                                       \
    } while (0)

/* ---- memory ---- */

int32_t sim_cudaMalloc(void *pointer, uint64_t bytes)
{
    DO(cuMemAlloc(pointer, bytes));
}

int32_t sim_cudaFree(void *pointer)
{
    DO(cuMemFree((uintptr_t)pointer));
}

int32_t sim_cudaMallocAsync(void *pointer, uint64_t bytes, void *stream)
{
    DO(cuMemAllocAsync(pointer, bytes, stream));
}

int32_t sim_cudaFreeAsync(void *pointer, void *stream)
{
    DO(cuMemFreeAsync((uintptr_t)pointer, stream));
}

int32_t sim_cudaMemcpy(void *destination, void *source, uint64_t bytes, uint32_t kind)
{
    (void)kind;
    DO(cuMemcpy((uintptr_t)destination, (uintptr_t)source, bytes));
}

int32_t sim_cudaMemcpyAsync(void *destination, void *source, uint64_t bytes, uint32_t kind, void *stream)
{
    (void)kind;
    DO(cuMemcpyAsync((uintptr_t)destination, (uintptr_t)source, bytes, stream));
}

int32_t sim_cudaMemset(void *pointer, uint32_t value, uint64_t bytes)
{
    DO(cuMemsetD8((uintptr_t)pointer, (uint8_t)value, bytes));
}

int32_t sim_cudaMemsetAsync(void *pointer, uint32_t value, uint64_t bytes, void *stream)
{
    DO(cuMemsetD8Async((uintptr_t)pointer, (uint8_t)value, bytes, stream));
}

/* ---- streams, events, launches ---- */

int32_t sim_cudaStreamCreate(void *stream)
{
    DO(cuStreamCreate(stream, 0));
}

int32_t sim_cudaStreamSynchronize(void *stream)
{
    DO(cuStreamSynchronize(stream));
}

int32_t sim_cudaStreamDestroy(void *stream)
{
    DO(cuStreamDestroy(stream));
}

int32_t sim_cudaStreamWaitEvent(void *stream, void *event, uint32_t flags)
{
    DO(cuStreamWaitEvent(stream, event, flags));
}

int32_t sim_cudaEventCreate(void *event)
{
    DO(cuEventCreate(event, 0));
}

int32_t sim_cudaEventRecord(void *event, void *stream)
{
    DO(cuEventRecord(event, stream));
}

int32_t sim_cudaEventSynchronize(void *event)
{
    DO(cuEventSynchronize(event));
}

int32_t sim_cudaEventElapsedTime(void *ms, void *from, void *to)
{
    DO(cuEventElapsedTime(ms, from, to));
}

int32_t sim_cudaEventDestroy(void *event)
{
    DO(cuEventDestroy(event));
}

int32_t sim_cudaDeviceSynchronize(void)
{
    DO(cuCtxSynchronize());
}

/* Takes the kernel's name in place of the function that nvcc would have registered. */
int32_t sim_cudaLaunchKernel(void *name, struct bytes12 grid, struct bytes12 block, void *arguments,
                             uint64_t shared_bytes, void *stream)
{
    int32_t status = ready();
    void *function = NULL;
    if (status == 0 && !cu.module)
        status = cu.cuModuleLoadData(&cu.module, "");
    if (status == 0)
        status = cu.cuModuleGetFunction(&function, cu.module, name);
    if (status == 0)
        status = cu.cuLaunchKernel(function, grid.words[0], grid.words[1], grid.words[2], block.words[0],
                                   block.words[1], block.words[2], (uint32_t)shared_bytes, stream, arguments,
                                   NULL);
    return done(status);
}

/* ---- other functions ---- */

int32_t sim_cudaGetDeviceCount(void *count)
{
    DO(cuDeviceGetCount(count));
}

int32_t sim_cudaGetDevice(void *device)
{
    *(int *)device = 0;
    return done(ready());
}

int32_t sim_cudaSetDevice(uint32_t device)
{
    int found;
    DO(cuDeviceGet(&found, (int)device));
}

int32_t sim_cudaDriverGetVersion(void *version)
{
    DO(cuDriverGetVersion(version));
}

/* Returns a version that distinguishes the runtimes loaded into one process. */
int32_t sim_cudaRuntimeGetVersion(void *version)
{
    *(int *)version = SIMCUDART_VERSION;
    return 0;
}

int32_t sim_cudaGetLastError(void)
{
    const int32_t error = last_error;
    last_error = 0;
    return error;
}

int32_t sim_cudaPeekAtLastError(void)
{
    return last_error;
}

void *sim_cudaGetErrorName(uint32_t error)
{
    return error == 0 ? "cudaSuccess" : "cudaErrorOther";
}

void *sim_cudaGetErrorString(uint32_t error)
{
    return error == 0 ? "no error" : "some error";
}

int32_t sim_cudaGetDriverEntryPointByVersion(void *symbol, void *function, uint32_t version, uint64_t flags,
                                             void *status)
{
    DO(get(symbol, function, (int)version, flags, status));
}
