/* selftest_stream.c: kernels and their handles, streams in time, events, and host callbacks. */
#include "selftest.h"

#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <unistd.h>

static CUresult fill(CUfunction function, CUdeviceptr at, uint32_t value, uint32_t count, CUstream stream)
{
    void *params[] = { &at, &value, &count };
    return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL);
}

static void kernels_fill_memory(void)
{
    uint32_t in[16];
    CUdeviceptr at;
    CUlibrary library;
    CUkernel kernel;
    start();
    CUfunction function = get_function("fill_u32");
    OK(cuMemAlloc(&at, sizeof in));
    OK(cuMemsetD8(at, 0, sizeof in));
    OK(fill(function, at, 0xabcd, 8, NULL));
    OK(cuLibraryLoadData(&library, "image", NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&kernel, library, "fill_u32"));
    OK(fill((CUfunction)kernel, at + 32, 0x1234, 4, NULL));
    struct {
        CUdeviceptr at;
        uint32_t value, count;
    } packed = { at + 48, 77, 2 };
    size_t bytes = sizeof packed;
    void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                      CU_LAUNCH_PARAM_END };
    const CUlaunchConfig config = {
        .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1
    };
    OK(cuLaunchKernelEx(&config, function, NULL, extra));
    OK(cuMemcpyDtoH(in, at, sizeof in));
    CHECK(in[0] == 0xabcd && in[7] == 0xabcd && in[8] == 0x1234 && in[11] == 0x1234 && in[12] == 77 &&
          in[13] == 77);
    CHECK(in[14] == 0 && in[15] == 0);
}

static CUresult launch(CUfunction function, unsigned grid, unsigned block_x, unsigned block_y,
                       unsigned shared)
{
    return cuLaunchKernel(function, grid, 1, 1, block_x, block_y, 1, shared, NULL, NULL, NULL);
}

static void bad_launches_are_refused(void)
{
    void *nothing[1] = { NULL };
    start();
    CUfunction function = get_function("_Z6kernelPfi");
    OK(launch(function, 1, 1024, 1, 49152));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, launch(function, 0, 1, 1, 0));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, launch(function, 1, 0, 1, 0));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, launch(function, 1, 1025, 1, 0));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, launch(function, 1, 64, 64, 0));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, launch(function, 1, 1, 1, 49153));
    CHECK_RESULT(CUDA_ERROR_INVALID_HANDLE, launch(NULL, 1, 1, 1, 0));
    CHECK_RESULT(CUDA_ERROR_INVALID_HANDLE, launch((CUfunction)nothing, 1, 1, 1, 0));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE,
                 cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, nothing, nothing));
}

static void a_faulting_kernel_ends_the_context(void)
{
    CUdeviceptr at;
    CUcontext current;
    CUcontext context = start();
    OK(fill(get_function("fill_u32"), 0x1000, 1, 1, NULL));
    CHECK_RESULT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    CHECK_RESULT(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&at, 16));
    OK(cuCtxGetCurrent(&current));
    CHECK(current == context);
    OK(cuCtxDestroy(context));
    start();
    OK(cuMemAlloc(&at, 16));
}

static void handles_die_and_are_used_again(void)
{
    CUmodule module, again;
    CUfunction function, same, other;
    const char *name;
    char long_name[4098];
    start();
    OK(cuModuleLoadData(&module, "image"));
    OK(cuModuleGetFunction(&function, module, "first"));
    OK(cuModuleGetFunction(&same, module, "first"));
    CHECK(same == function);
    CHECK_RESULT(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&other, module, "missing_kernel"));
    memset(long_name, 'x', sizeof long_name);
    long_name[4097] = '\0';
    CHECK_RESULT(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&other, module, long_name));
    long_name[4096] = '\0';
    OK(cuModuleGetFunction(&other, module, long_name));
    OK(cuFuncGetName(&name, other));
    CHECK(!strcmp(name, long_name));
    OK(cuModuleUnload(module));
    CHECK_RESULT(CUDA_ERROR_INVALID_HANDLE, launch(function, 1, 1, 1, 0));
    CHECK_RESULT(CUDA_ERROR_INVALID_HANDLE, cuFuncGetName(&name, function));
    CHECK_RESULT(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module));
    OK(cuModuleLoadData(&again, "another image"));
    CHECK(again == module);
    OK(cuModuleGetFunction(&same, again, "second"));
    OK(cuModuleGetFunction(&other, again, "third"));
    CHECK(same == function || other == function);
    OK(cuFuncGetName(&name, function));
    CHECK(!strcmp(name, same == function ? "second" : "third"));
}

static void kernels_have_functions_and_names(void)
{
    CUlibrary library;
    CUkernel kernel;
    CUfunction function, same;
    const char *name;
    int value;
    start();
    OK(cuLibraryLoadData(&library, "image", NULL, NULL, 0, NULL, NULL, 0));
    CHECK_RESULT(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&kernel, library, "missing"));
    OK(cuLibraryGetKernel(&kernel, library, "_Z3addPfS_S_"));
    OK(cuKernelGetName(&name, kernel));
    CHECK(!strcmp(name, "_Z3addPfS_S_"));
    OK(cuKernelGetFunction(&function, kernel));
    OK(cuKernelGetFunction(&same, kernel));
    CHECK(same == function);
    OK(cuFuncGetName(&name, function));
    CHECK(!strcmp(name, "_Z3addPfS_S_"));
    OK(cuKernelGetAttribute(&value, 0, kernel, 0));
    CHECK(value == 1024);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&value, function, 128, 0, 0));
    CHECK(value == 16);
    OK(cuLibraryUnload(library));
    CHECK_RESULT(CUDA_ERROR_INVALID_HANDLE, cuKernelGetName(&name, kernel));
    CHECK_RESULT(CUDA_ERROR_INVALID_HANDLE, launch(function, 1, 1, 1, 0));
    CHECK_RESULT(CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(library));
}

/* SIMCUDA_LAUNCH_NS is 20 ms in these. */
enum { LAUNCH_NS = 20000000 };

static void streams_are_busy_as_long_as_their_kernels(void)
{
    CUstream a, b;
    CUevent before, after;
    float milliseconds;
    start();
    CUfunction function = get_function("work");
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&before, 0));
    OK(cuEventCreate(&after, 0));
    const int64_t begin_ns = now_ns();
    OK(cuEventRecord(before, a));
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, a, NULL, NULL));
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, a, NULL, NULL));
    OK(cuEventRecord(after, a));
    CHECK_RESULT(CUDA_ERROR_NOT_READY, cuStreamQuery(a));
    CHECK_RESULT(CUDA_ERROR_NOT_READY, cuEventQuery(after));
    CHECK_RESULT(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&milliseconds, before, after));
    OK(cuStreamQuery(b));
    OK(cuEventSynchronize(after));
    CHECK(now_ns() - begin_ns >= 2 * LAUNCH_NS);
    OK(cuStreamQuery(a));
    OK(cuEventElapsedTime(&milliseconds, before, after));
    CHECK(milliseconds >= 40.0f && milliseconds < 60.0f);
    const int64_t second_ns = now_ns();
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, a, NULL, NULL));
    OK(cuEventRecord(after, a));
    OK(cuStreamWaitEvent(b, after, 0));
    OK(cuStreamSynchronize(b));
    CHECK(now_ns() - second_ns >= LAUNCH_NS);
}

/* SIMCUDA_QUEUE is 3. */
static void launches_wait_for_room(void)
{
    start();
    CUfunction function = get_function("work");
    const int64_t begin_ns = now_ns();
    for (int i = 0; i < 3; i++)
        OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    CHECK_RESULT(CUDA_ERROR_NOT_READY, cuStreamQuery(NULL));
    for (int done = 1; done <= 2; done++) {
        OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
        CHECK(now_ns() - begin_ns >= done * LAUNCH_NS);
    }
    OK(cuStreamSynchronize(NULL));
    CHECK(now_ns() - begin_ns >= 5 * LAUNCH_NS);
}

static void the_legacy_stream_waits_for_blocking_ones(void)
{
    CUstream blocking, free_stream;
    CUdeviceptr at;
    char byte;
    start();
    CUfunction function = get_function("work");
    OK(cuMemAlloc(&at, 1));
    OK(cuStreamCreate(&blocking, 0));
    OK(cuStreamCreate(&free_stream, CU_STREAM_NON_BLOCKING));
    const int64_t begin_ns = now_ns();
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, blocking, NULL, NULL));
    OK(cuStreamSynchronize(free_stream));
    CHECK_RESULT(CUDA_ERROR_NOT_READY, cuStreamQuery(NULL));
    OK(cuMemcpyDtoH(&byte, at, 1));
    CHECK(now_ns() - begin_ns >= LAUNCH_NS);
    OK(cuStreamQuery(blocking));
}

static void copies_take_as_long_as_their_bytes(void)
{
    static char bytes[2000000];
    CUdeviceptr at;
    start();
    OK(cuMemAlloc(&at, sizeof bytes));
    const int64_t begin_ns = now_ns();
    OK(cuMemcpyHtoD(at, bytes, sizeof bytes)); /* at 0.1 GB/s */
    CHECK(now_ns() - begin_ns >= 20000000);
}

static void events_that_cannot_tell_are_refused(void)
{
    CUevent timed, untimed, dead;
    float milliseconds;
    start();
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&timed, 16));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&timed, CU_EVENT_INTERPROCESS));
    OK(cuEventCreate(&timed, 0));
    OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&dead, 0));
    OK(cuEventQuery(timed));
    OK(cuEventSynchronize(timed));
    CHECK_RESULT(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, timed, timed));
    OK(cuEventRecord(timed, NULL));
    OK(cuEventRecord(untimed, NULL));
    CHECK_RESULT(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, timed, untimed));
    OK(cuEventDestroy(dead));
    CHECK_RESULT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuEventRecord(dead, NULL));
    CHECK_RESULT(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(NULL, NULL));
}

/* ---- Host callbacks. */

struct host_step {
    pthread_t caller;
    sem_t may_go;
    uint32_t *written;
    CUresult call_inside;
};

static void host_step(void *data)
{
    struct host_step *step = data;
    sem_wait(&step->may_go);
    step->caller = pthread_self();
    *step->written = 42;
    step->call_inside = cuCtxSynchronize();
}

static void later_work_waits_for_a_host_function(void)
{
    struct host_step step;
    void *page_locked;
    CUdeviceptr at;
    CUstream stream;
    CUevent event;
    start();
    sem_init(&step.may_go, 0, 0);
    OK(cuMemHostAlloc(&page_locked, 2 * sizeof(uint32_t), 0));
    uint32_t *source = page_locked, *result = source + 1;
    *source = 1;
    *result = 0;
    step.written = source;
    OK(cuMemAlloc(&at, sizeof *source));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    OK(cuLaunchHostFunc(stream, host_step, &step));
    OK(cuMemcpyHtoDAsync(at, source, sizeof *source, stream));
    OK(cuMemcpyDtoHAsync(result, at, sizeof *result, stream));
    OK(cuEventRecord(event, stream));
    CHECK_RESULT(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    CHECK_RESULT(CUDA_ERROR_NOT_READY, cuEventQuery(event));
    CHECK(*result == 0);
    sem_post(&step.may_go);
    OK(cuEventSynchronize(event));
    CHECK(*result == 42);
    CHECK(!pthread_equal(step.caller, pthread_self()));
    CHECK_RESULT(CUDA_ERROR_NOT_PERMITTED, step.call_inside);
    OK(cuStreamSynchronize(stream));
}

static void pageable_memory_is_read_before_the_call_returns(void)
{
    struct host_step step;
    uint32_t written = 0, source = 7, result = 0;
    CUdeviceptr at;
    CUstream stream;
    start();
    sem_init(&step.may_go, 0, 1);
    step.written = &written;
    OK(cuMemAlloc(&at, sizeof source));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuLaunchHostFunc(stream, host_step, &step));
    OK(cuMemcpyHtoDAsync(at, &source, sizeof source, stream));
    source = 8;
    CHECK(written == 42);
    OK(cuMemcpyDtoH(&result, at, sizeof result));
    CHECK(result == 7);
}

static void callback(CUstream stream, CUresult status, void *data)
{
    CUstream *seen = data;
    *seen = status == CUDA_SUCCESS ? stream : NULL;
}

static void callbacks_get_their_stream(void)
{
    CUstream stream, seen = NULL;
    start();
    OK(cuStreamCreate(&stream, 0));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuStreamAddCallback(stream, callback, &seen, 1));
    OK(cuStreamAddCallback(stream, callback, &seen, 0));
    OK(cuStreamDestroy(stream));
    OK(cuCtxSynchronize());
    CHECK(seen == stream);
    CHECK_RESULT(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
}

const struct selftest stream_tests[] = {
    { "kernel-fill", kernels_fill_memory, NULL },
    { "kernel-refused", bad_launches_are_refused, NULL },
    { "kernel-fault", a_faulting_kernel_ends_the_context, NULL },
    { "handle-reuse", handles_die_and_are_used_again, NULL },
    { "library", kernels_have_functions_and_names, NULL },
    { "stream-time", streams_are_busy_as_long_as_their_kernels, "SIMCUDA_LAUNCH_NS=20000000" },
    { "stream-queue", launches_wait_for_room, "SIMCUDA_LAUNCH_NS=20000000 SIMCUDA_QUEUE=3" },
    { "stream-legacy", the_legacy_stream_waits_for_blocking_ones, "SIMCUDA_LAUNCH_NS=20000000" },
    { "copy-time", copies_take_as_long_as_their_bytes, "SIMCUDA_COPY_GBPS=0.1" },
    { "event-refused", events_that_cannot_tell_are_refused, NULL },
    { "host-function", later_work_waits_for_a_host_function, NULL },
    { "host-function-pageable", pageable_memory_is_read_before_the_call_returns, NULL },
    { "stream-callback", callbacks_get_their_stream, NULL },
    { NULL, NULL, NULL },
};
