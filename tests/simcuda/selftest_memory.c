/* selftest_memory.c: devices and contexts, allocation, copies, sets, arrays, pools, and what is refused. */
#include "selftest.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static void devices_are_counted_and_named(void)
{
    int count, value;
    char name[64];
    size_t bytes;
    CUdevice device;
    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    CHECK(count == 3);
    OK(cuDeviceGet(&device, 2));
    CHECK_RESULT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, 3));
    OK(cuDeviceGetName(name, sizeof name, 2));
    CHECK(!strcmp(name, "simcuda"));
    OK(cuDeviceTotalMem(&bytes, 0));
    CHECK(bytes == (size_t)64 << 20);
    for (int attribute = 1; attribute < CU_DEVICE_ATTRIBUTE_LAST; attribute++)
        OK(cuDeviceGetAttribute(&value, attribute, 0));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_LAST, 0));
}

static void *current_of_thread(void *context)
{
    CUcontext current;
    OK(cuCtxGetCurrent(&current));
    CHECK(!current);
    CHECK_RESULT(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
    OK(cuCtxSetCurrent(context));
    OK(cuCtxSynchronize());
    return NULL;
}

static void each_thread_has_a_stack_of_contexts(void)
{
    CUcontext first = start(), second, current;
    CUdevice device;
    unsigned version;
    pthread_t thread;
    OK(cuCtxCreate_v2(&second, 0, 1));
    OK(cuCtxGetDevice(&device));
    CHECK(device == 1);
    OK(cuCtxGetDevice_v2(&device, first));
    CHECK(device == 0);
    OK(cuCtxPopCurrent(&current));
    CHECK(current == second);
    OK(cuCtxGetCurrent(&current));
    CHECK(current == first);
    OK(cuCtxPushCurrent(second));
    CHECK(pthread_create(&thread, NULL, current_of_thread, first) == 0 && pthread_join(thread, NULL) == 0);
    OK(cuCtxGetApiVersion(first, &version));
    CHECK(version == 3020);
    OK(cuCtxDestroy(second));
    OK(cuCtxGetCurrent(&current));
    CHECK(current == first);
    OK(cuCtxSetCurrent(NULL));
    CHECK_RESULT(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetDevice(&device));
    CHECK_RESULT(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(second));
}

static void primary_contexts_are_counted(void)
{
    CUcontext one, two;
    CUdeviceptr address;
    unsigned flags;
    int active;
    OK(cuInit(0));
    CHECK_RESULT(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxRetain(&one, 0));
    OK(cuDevicePrimaryCtxRetain(&two, 0));
    CHECK(one == two);
    OK(cuCtxSetCurrent(one));
    OK(cuMemAlloc(&address, 100));
    CHECK_RESULT(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(one));
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(active);
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(!active);
    CHECK_RESULT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
}

static void bytes_come_back(void)
{
    unsigned char out[5000], in[5000];
    CUdeviceptr a, b;
    start();
    for (size_t i = 0; i < sizeof out; i++)
        out[i] = (unsigned char)(i * 7);
    OK(cuMemAlloc(&a, sizeof out));
    OK(cuMemAlloc(&b, sizeof out));
    CHECK(a % 512 == 0 && b % 512 == 0);
    OK(cuMemcpyHtoD(a, out, sizeof out));
    OK(cuMemcpyDtoD(b, a, sizeof out));
    OK(cuMemcpyDtoH(in, b, sizeof in));
    CHECK(!memcmp(in, out, sizeof in));
    OK(cuMemsetD8(a, 0xab, 10));
    OK(cuMemsetD32(a + 12, 0x01020304, 2));
    OK(cuMemcpy((CUdeviceptr)(uintptr_t)in, a, 24));
    CHECK(in[9] == 0xab && in[10] == (unsigned char)(10 * 7) && in[12] == 4 && in[19] == 1 && in[20] == 140);
    OK(cuMemcpyHtoDAsync_v2_ptsz(a, out, sizeof out, NULL));
    OK(cuMemcpyDtoHAsync(in, a, sizeof in, CU_STREAM_PER_THREAD));
    OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    CHECK(!memcmp(in, out, sizeof in));
}

static void rectangles_and_boxes_come_back(void)
{
    unsigned char out[8][16], in[8][16];
    CUdeviceptr at;
    size_t pitch;
    start();
    for (size_t i = 0; i < sizeof out; i++)
        out[i / 16][i % 16] = (unsigned char)i;
    memset(in, 0, sizeof in);
    OK(cuMemAllocPitch(&at, &pitch, 16, 8, 4));
    CHECK(pitch == 512);
    CUDA_MEMCPY2D copy = {
        .srcMemoryType = CU_MEMORYTYPE_HOST,
        .srcHost = out,
        .srcPitch = 16,
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = at,
        .dstPitch = pitch,
        .WidthInBytes = 16,
        .Height = 8,
    };
    OK(cuMemcpy2D(&copy));
    CUDA_MEMCPY3D back = {
        .srcXInBytes = 4,
        .srcY = 2,
        .srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = at,
        .srcPitch = pitch,
        .srcHeight = 4,
        .dstMemoryType = CU_MEMORYTYPE_HOST,
        .dstHost = in,
        .dstPitch = 16,
        .dstHeight = 4,
        .WidthInBytes = 8,
        .Height = 2,
        .Depth = 2,
    };
    OK(cuMemcpy3D(&back));
    CHECK(in[0][0] == out[2][4] && in[1][7] == out[3][11] && in[4][0] == out[6][4] && in[5][7] == out[7][11]);
    CHECK(in[2][0] == 0 && in[0][8] == 0);
    copy.WidthInBytes = 17;
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&copy));
    copy.WidthInBytes = 16;
    copy.Height = 9;
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&copy));
    copy.Height = 0;
    OK(cuMemcpy2D(&copy));
}

static void arrays_hold_what_was_copied(void)
{
    const CUDA_ARRAY_DESCRIPTOR descriptor = { .Width = 10, .Height = 4, .Format = 0x20, .NumChannels = 2 };
    CUresult (*to_array)(CUarray, size_t, const void *, size_t) =
        (CUresult(*)(CUarray, size_t, const void *, size_t))dlsym(RTLD_DEFAULT, "cuMemcpyHtoA_v2");
    CUresult (*from_array)(void *, CUarray, size_t, size_t) =
        (CUresult(*)(void *, CUarray, size_t, size_t))dlsym(RTLD_DEFAULT, "cuMemcpyAtoH_v2");
    char in[80] = { 0 }, out[80];
    CUarray array;
    start();
    memset(out, 'x', sizeof out);
    OK(cuArrayCreate_v2(&array, &descriptor));
    OK(to_array(array, 0, out, sizeof out));
    OK(from_array(in, array, 0, sizeof in));
    CHECK(!memcmp(in, out, sizeof in));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, to_array(array, 8, out, sizeof out));
    OK(cuArrayDestroy(array));
    CHECK_RESULT(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(array));
}

/* A batch of two: host memory to part of an array, in elements, and that part back. */
static void batches_count_elements_of_arrays(void)
{
    enum { POINTER = 1, ARRAY = 2, WIDTH = 4, HEIGHT = 3, ELEMENT_BYTES = 8 };
    struct operand {
        uint64_t type, pointer_or_array, words[3];
    };
    struct {
        struct operand source, destination;
        uint64_t width, height, depth, order;
    } copies[2] = { 0 };
    const CUDA_ARRAY_DESCRIPTOR descriptor = { .Width = 10, .Height = 4, .Format = 0x20, .NumChannels = 2 };
    CUresult (*batch)(size_t, void *, unsigned long long, CUstream) =
        (CUresult(*)(size_t, void *, unsigned long long, CUstream))dlsym(RTLD_DEFAULT,
                                                                         "cuMemcpy3DBatchAsync_v2");
    unsigned char out[WIDTH * HEIGHT * ELEMENT_BYTES], in[sizeof out] = { 0 };
    CUarray array;
    CUstream stream;
    start();
    for (size_t i = 0; i < sizeof out; i++)
        out[i] = (unsigned char)(i * 3);
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuArrayCreate_v2(&array, &descriptor));
    const struct operand part = { ARRAY, (uintptr_t)array, { 6, 1, 0 } };
    copies[0].source = (struct operand){ POINTER, (uintptr_t)out, { 0 } };
    copies[0].destination = copies[1].source = part;
    copies[1].destination = (struct operand){ POINTER, (uintptr_t)in, { 0 } };
    for (int i = 0; i < 2; i++) {
        copies[i].width = WIDTH;
        copies[i].height = HEIGHT;
        copies[i].depth = copies[i].order = 1;
    }
    OK(batch(2, copies, 0, stream));
    OK(cuStreamSynchronize(stream));
    CHECK(!memcmp(in, out, sizeof in));
    copies[0].width = WIDTH + 1;
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, batch(1, copies, 0, stream));
}

static void memory_runs_out_and_is_given_back(void)
{
    const size_t mega = (size_t)1 << 20;
    CUdeviceptr big, small;
    size_t available, total;
    start();
    OK(cuMemGetInfo(&available, &total));
    CHECK(total == 64 * mega && available == total);
    OK(cuMemAlloc(&big, 60 * mega));
    CHECK_RESULT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&small, 5 * mega));
    OK(cuMemAlloc(&small, 4 * mega));
    CHECK_RESULT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&small, 1));
    OK(cuMemFree(big));
    OK(cuMemAlloc(&small, 1));
    OK(cuMemGetInfo(&available, &total));
    CHECK(available == 60 * mega - 512);
    CHECK_RESULT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&small, SIZE_MAX));
}

static void bad_addresses_and_sizes_are_refused(void)
{
    char host[64];
    CUdeviceptr at, base;
    size_t bytes;
    start();
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&at, 0));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(NULL, 64));
    OK(cuMemAlloc(&at, sizeof host));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(at, host, sizeof host + 1));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(at + 1, host, sizeof host));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(0x1000, host, 1));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(at, NULL, 1));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(NULL, at, 1));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(host, at, SIZE_MAX));
    OK(cuMemcpyHtoD(0x1000, host, 0));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(at, 0, sizeof host + 1));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(at + 1, 0, 1));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemFree(at + 16));
    CHECK_RESULT(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &bytes, 0x1000));
    OK(cuMemGetAddressRange(&base, &bytes, at + 5));
    CHECK(base == at && bytes == sizeof host);
    OK(cuMemFree(at));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemFree(at));
    OK(cuMemFree(0));
}

static void host_and_managed_memory_is_known(void)
{
    void *host;
    char mine[256];
    CUdeviceptr managed, device;
    int type;
    start();
    OK(cuMemHostAlloc(&host, 100, CU_MEMHOSTALLOC_PORTABLE));
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)host));
    CHECK(type == CU_MEMORYTYPE_HOST);
    OK(cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL));
    memset((void *)(uintptr_t)managed, 3, 100);
    OK(cuMemAlloc(&device, 100));
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
    CHECK(type == CU_MEMORYTYPE_DEVICE);
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE,
                 cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)mine));
    OK(cuMemHostRegister(mine, sizeof mine, 0));
    CHECK_RESULT(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(mine + 9, 10, 0));
    OK(cuMemHostUnregister(mine));
    CHECK_RESULT(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(mine));
    OK(cuMemFreeHost(host));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(host));
    OK(cuMemFree(managed));
}

static void stream_ordered_memory_works(void)
{
    CUdeviceptr at;
    CUstream stream;
    size_t available, total;
    start();
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAllocAsync(&at, 4096, stream));
    OK(cuMemsetD8Async(at, 1, 4096, stream));
    OK(cuMemFreeAsync(at, stream));
    OK(cuStreamSynchronize(stream));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(at, stream));
    OK(cuMemGetInfo(&available, &total));
    CHECK(available == total);
}

static void calls_of_before_3_2_have_memory_below_4_gib(void)
{
    CUresult (*alloc)(unsigned *, unsigned) =
        (CUresult(*)(unsigned *, unsigned))dlsym(RTLD_DEFAULT, "cuMemAlloc");
    CUresult (*copy)(unsigned, const void *, unsigned) =
        (CUresult(*)(unsigned, const void *, unsigned))dlsym(RTLD_DEFAULT, "cuMemcpyHtoD");
    CUresult (*release)(unsigned) = (CUresult(*)(unsigned))dlsym(RTLD_DEFAULT, "cuMemFree");
    unsigned at;
    char in[8] = { 0 };
    start();
    OK(alloc(&at, 100));
    OK(copy(at, "abcdefg", 8));
    OK(cuMemcpyDtoH(in, at, sizeof in));
    CHECK(!strcmp(in, "abcdefg"));
    OK(release(at));
}

static void what_a_handle_tells_needs_no_current_context(void)
{
    CUstream stream;
    CUdeviceptr at;
    CUfunction function;
    CUcontext context = start();
    OK(cuStreamCreate(&stream, 0));
    OK(cuMemAlloc(&at, 16));
    function = get_function("anything");
    OK(cuCtxPopCurrent(&context));
    OK(cuMemsetD8Async(at, 1, 16, stream));
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    OK(cuStreamSynchronize(stream));
    CHECK_RESULT(CUDA_ERROR_INVALID_CONTEXT, cuMemsetD8Async(at, 1, 16, NULL));
    CHECK_RESULT(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&at, 16));
    OK(cuMemFree(at));
}

const struct selftest memory_tests[] = {
    { "devices", devices_are_counted_and_named, "SIMCUDA_DEVICES=3 SIMCUDA_MEMORY_MB=64" },
    { "context-stack", each_thread_has_a_stack_of_contexts, "SIMCUDA_DEVICES=2" },
    { "context-primary", primary_contexts_are_counted, NULL },
    { "context-none", what_a_handle_tells_needs_no_current_context, NULL },
    { "memory-round-trip", bytes_come_back, NULL },
    { "memory-2d-3d", rectangles_and_boxes_come_back, NULL },
    { "memory-array", arrays_hold_what_was_copied, NULL },
    { "memory-batch", batches_count_elements_of_arrays, NULL },
    { "memory-out", memory_runs_out_and_is_given_back, "SIMCUDA_MEMORY_MB=64" },
    { "memory-bad", bad_addresses_and_sizes_are_refused, NULL },
    { "memory-host", host_and_managed_memory_is_known, NULL },
    { "memory-async", stream_ordered_memory_works, NULL },
    { "memory-legacy", calls_of_before_3_2_have_memory_below_4_gib, NULL },
    { NULL, NULL, NULL },
};
