/* mix.c: steps that each make a single call, and the mixes that choose among the steps. Each thread keeps a
 * copy of its device memory's expected contents, so that every read can be checked in full. */
#include "mix.h"

#include <string.h>

static const char *const kernel_names[] = {
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
    ("_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_14func_wrapper_tIfZNS0_11sum_functorIfffEclE"
     "RNS_14TensorIteratorEEUlffE_EEjfLi4ELi4EEEEEvT1_"),
    ("_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastINS0_15CUDAFunctor_addIfEEEE"
     "vRNS_18TensorIteratorBaseERKT_EUliE_EEviT1_"),
    "_ZN7cutlass7Kernel2I50cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4EEvNT_6ParamsE",
    "_Z18conv2d_grouped_nhwI6__halfLi3ELi3EEvPKT_S3_PS1_iiii",
    "_Z9normalizeILi256EEvPKfPfi",
    "ampere_sgemm_128x64_tn",
    "triton_poi_fused_add_relu_0",
};
enum { KERNEL_COUNT = sizeof kernel_names / sizeof *kernel_names };

const char *const mix_words[] = { "getctx", "training", "alloc", "copy", "launch", NULL };

/* xorshift64*, so that the same seed always produces the same calls. */
static uint64_t random_below(struct worker *worker, uint64_t limit)
{
    worker->random ^= worker->random >> 12;
    worker->random ^= worker->random << 25;
    worker->random ^= worker->random >> 27;
    return (worker->random * 0x2545f4914f6cdd1du >> 16) % limit;
}

/* Returns a number of bytes to copy or set. The number is mostly small, but sometimes it is the whole
 * buffer. */
static size_t random_bytes(struct worker *worker)
{
    const size_t most = (size_t)1 << (2 + random_below(worker, 15));
    return 1 + random_below(worker, most);
}

void mix_start_process(struct shared *shared)
{
    static CUkernel kernels[KERNEL_COUNT];
    shared->context = driver_start();
    OK(cu.LibraryLoadData(&shared->library, "image", NULL, NULL, 0, NULL, NULL, 0));
    OK(cu.LibraryGetKernel(&shared->fill, shared->library, "fill_u32"));
    for (size_t i = 0; i < KERNEL_COUNT; i++)
        OK(cu.LibraryGetKernel(&kernels[i], shared->library, kernel_names[i]));
    shared->kernels = kernels;
    OK(cu.ModuleLoadData(&shared->module, "image"));
}

void mix_start_thread(struct worker *worker, const struct shared *shared, uint64_t seed)
{
    worker->shared = shared;
    worker->random = seed * 0x9e3779b97f4a7c15u | 1;
    OK(cu.CtxSetCurrent(shared->context));
    OK(cu.StreamCreate(&worker->stream, CU_STREAM_NON_BLOCKING));
    OK(cu.MemAlloc(&worker->buffer, BUFFER_BYTES));
    OK(cu.MemAlloc(&worker->second, BUFFER_BYTES));
    OK(cu.MemcpyHtoD(worker->buffer, worker->expected, BUFFER_BYTES));
}

/* ---- Steps. */

static void get_current(struct worker *worker)
{
    CUcontext context;
    OK(cu.CtxGetCurrent(&context));
    ENSURE(context == worker->shared->context);
}

static void get_device(struct worker *worker)
{
    CUdevice device = -1;
    (void)worker;
    OK(cu.CtxGetDevice(&device, NULL));
    ENSURE(device == 0);
}

static void get_primary_state(struct worker *worker)
{
    unsigned flags;
    int active = 0;
    (void)worker;
    OK(cu.DevicePrimaryCtxGetState(0, &flags, &active));
    ENSURE(active);
}

static CUkernel any_kernel(struct worker *worker)
{
    return worker->shared->kernels[random_below(worker, KERNEL_COUNT)];
}

/* A neural network launches its kernels with the same few hundred grids and blocks in each step. */
static void launch_any(struct worker *worker)
{
    const unsigned grid = 1 + 61 * (unsigned)random_below(worker, 16), block = 64u << random_below(worker, 3);
    OK(cu.LaunchKernel((CUfunction)any_kernel(worker), grid, 1, 1, block, 1, 1, 0, worker->stream, NULL,
                       NULL));
}

static void launch_any_ex(struct worker *worker)
{
    const CUlaunchConfig config = {
        .gridDimX = 1 + 11 * (unsigned)random_below(worker, 9),
        .gridDimY = 2,
        .gridDimZ = 1,
        .blockDimX = 64,
        .blockDimY = 2,
        .blockDimZ = 2,
        .sharedMemBytes = 1024,
        .hStream = worker->stream,
    };
    OK(cu.LaunchKernelEx(&config, (CUfunction)any_kernel(worker), NULL, NULL));
}

static void launch_filling(struct worker *worker)
{
    const uint32_t count = 1 + (uint32_t)random_below(worker, BUFFER_BYTES / 4),
                   value = (uint32_t)worker->random;
    OK(launch_fill((CUfunction)worker->shared->fill, worker->buffer, value, count, worker->stream));
    for (size_t i = 0; i < count; i++)
        memcpy(worker->expected + i * sizeof value, &value, sizeof value);
}

static void get_kernel_name(struct worker *worker)
{
    const size_t which = random_below(worker, KERNEL_COUNT);
    const char *name;
    OK(cu.KernelGetName(&name, worker->shared->kernels[which]));
    ENSURE(!strcmp(name, kernel_names[which]));
}

static void get_kernel_function(struct worker *worker)
{
    CUfunction function = NULL;
    OK(cu.KernelGetFunction(&function, any_kernel(worker)));
    ENSURE(function);
}

static void get_kernel_attribute(struct worker *worker)
{
    int value = 0;
    OK(cu.KernelGetAttribute(&value, 0, any_kernel(worker), 0));
    ENSURE(value == 1024);
}

static void get_occupancy(struct worker *worker)
{
    int blocks = 0;
    OK(cu.OccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, (CUfunction)any_kernel(worker), 128, 0,
                                                             0));
    ENSURE(blocks > 0);
}

static void get_attribute(struct worker *worker)
{
    int value = 0;
    (void)worker;
    OK(cu.DeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    ENSURE(value == 32);
}

static void get_no_attribute(struct worker *worker)
{
    int value;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cu.DeviceGetAttribute(&value, 9999, 0));
    worker->failed++;
}

static void allocate_too_much(struct worker *worker)
{
    CUdeviceptr address;
    EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cu.MemAlloc(&address, (size_t)1 << 50));
    worker->failed++;
}

static void find_no_kernel(struct worker *worker)
{
    CUfunction function;
    EXPECT(CUDA_ERROR_NOT_FOUND, cu.ModuleGetFunction(&function, worker->shared->module, "missing_kernel"));
    worker->failed++;
}

static void ask_capturing(struct worker *worker)
{
    CUstreamCaptureStatus status;
    OK(cu.StreamIsCapturing(worker->stream, &status));
    ENSURE(status == CU_STREAM_CAPTURE_STATUS_NONE);
}

static void set_bytes(struct worker *worker)
{
    const size_t bytes = random_bytes(worker);
    const unsigned char value = (unsigned char)worker->random;
    OK(cu.MemsetD8Async(worker->buffer, value, bytes, worker->stream));
    memset(worker->expected, value, bytes);
}

/* The copy reads its data directly from the expected content. If the thread changes that content before the
 * copy runs, the buffer receives the change as well, so the thread need not wait. */
static void upload(struct worker *worker)
{
    const size_t bytes = random_bytes(worker);
    for (size_t i = 0; i < bytes; i += 64)
        worker->expected[i] = (unsigned char)(worker->random >> (i & 31));
    OK(cu.MemcpyHtoDAsync(worker->buffer, worker->expected, bytes, worker->stream));
}

static void upload_now(struct worker *worker)
{
    const size_t bytes = random_bytes(worker);
    for (size_t i = 0; i < bytes; i += 64)
        worker->expected[i] = (unsigned char)(worker->random >> (i & 31));
    OK(cu.MemcpyHtoD(worker->buffer, worker->expected, bytes));
}

static void copy_within(struct worker *worker)
{
    OK(cu.MemcpyDtoD(worker->second, worker->buffer, BUFFER_BYTES));
    memcpy(worker->copy, worker->expected, BUFFER_BYTES);
    worker->copied = true;
}

static void download_now(struct worker *worker)
{
    const size_t bytes = random_bytes(worker);
    OK(cu.MemcpyDtoH(worker->read, worker->copied ? worker->second : worker->buffer, bytes));
    ENSURE(!memcmp(worker->read, worker->copied ? worker->copy : worker->expected, bytes));
    worker->copied = false;
}

static void download(struct worker *worker)
{
    const size_t bytes = random_bytes(worker);
    OK(cu.MemcpyDtoHAsync(worker->read, worker->buffer, bytes, worker->stream));
    worker->read_bytes = bytes;
}

static void synchronise(struct worker *worker)
{
    OK(cu.StreamSynchronize(worker->stream));
    ENSURE(!memcmp(worker->read, worker->expected, worker->read_bytes));
    worker->read_bytes = 0;
}

static void create_or_destroy_stream(struct worker *worker)
{
    if (worker->stream_count < STREAM_ROOM && random_below(worker, 2) == 0)
        OK(cu.StreamCreateWithPriority(&worker->streams[worker->stream_count++], CU_STREAM_NON_BLOCKING, -1));
    else if (worker->stream_count > 0)
        OK(cu.StreamDestroy(worker->streams[--worker->stream_count]));
    else
        ask_capturing(worker);
}

static void create_or_destroy_event(struct worker *worker)
{
    if (worker->event) {
        OK(cu.EventDestroy(worker->event));
        worker->event = NULL;
    } else {
        OK(cu.EventCreate(&worker->event, CU_EVENT_DISABLE_TIMING));
    }
}

static void allocate_or_free(struct worker *worker)
{
    const size_t count = worker->block_count;
    const bool is_async = random_below(worker, 2) == 0;
    if (count < BLOCK_ROOM && random_below(worker, 2) == 0) {
        const size_t bytes = random_bytes(worker) * 16;
        worker->block_is_async[count] = is_async;
        OK(is_async ? cu.MemAllocAsync(&worker->blocks[count], bytes, worker->stream)
                    : cu.MemAlloc(&worker->blocks[count], bytes));
        worker->block_count++;
    } else if (count > 0) {
        const size_t last = --worker->block_count;
        OK(worker->block_is_async[last] ? cu.MemFreeAsync(worker->blocks[last], worker->stream)
                                        : cu.MemFree(worker->blocks[last]));
    } else {
        size_t available, total;
        OK(cu.MemGetInfo(&available, &total));
        ENSURE(available <= total);
    }
}

static void allocate_or_free_host(struct worker *worker)
{
    if (worker->host) {
        OK(cu.MemFreeHost(worker->host));
        worker->host = NULL;
    } else {
        OK(cu.MemHostAlloc(&worker->host, random_bytes(worker), 0));
        memset(worker->host, 1, 1);
    }
}

/* ---- Mixes, which define how often each step is chosen. */

struct share {
    void (*step)(struct worker *worker);
    unsigned weight;
};

static const struct share getctx[] = { { get_current, 1 }, { NULL, 0 } };

/* How often each function is called in 205 training steps of a small convolutional network, with PyTorch 2.11
 * on an H200. Functions that were called fewer than 20 times are omitted, except for reads, which check the
 * other calls. Failing calls, which the training did not make, have been added. */
static const struct share training[] = {
    { get_device, 65936 },
    { get_primary_state, 20049 },
    { launch_any, 5470 },
    { get_kernel_name, 5365 },
    { get_current, 1940 },
    { launch_any_ex, 1230 },
    { get_attribute, 845 },
    { ask_capturing, 687 },
    { set_bytes, 619 },
    { upload, 416 },
    { get_kernel_function, 216 },
    { get_occupancy, 208 },
    { create_or_destroy_stream, 128 },
    { get_kernel_attribute, 112 },
    { launch_filling, 100 },
    { create_or_destroy_event, 40 },
    { allocate_or_free, 31 },
    { download, 30 },
    { get_no_attribute, 20 },
    { allocate_too_much, 10 },
    { find_no_kernel, 10 },
    { NULL, 0 },
};

static const struct share alloc[] = {
    { allocate_or_free, 8 }, { allocate_or_free_host, 2 }, { allocate_too_much, 1 }, { NULL, 0 }
};

static const struct share copy[] = { { upload, 2 },       { upload_now, 2 }, { copy_within, 2 },
                                     { download_now, 2 }, { download, 1 },   { set_bytes, 1 },
                                     { NULL, 0 } };

static const struct share launch[] = {
    { launch_any, 6 }, { launch_any_ex, 3 }, { launch_filling, 2 }, { download, 1 }, { NULL, 0 }
};

static const struct share *const mixes[] = {
    [MIX_GETCTX] = getctx, [MIX_TRAINING] = training, [MIX_ALLOC] = alloc,
    [MIX_COPY] = copy,     [MIX_LAUNCH] = launch,
};

void mix_step(struct worker *worker, enum mix mix)
{
    static _Thread_local unsigned total;
    const struct share *share = mixes[mix];
    worker->calls++;
    if (worker->read_bytes > 0) {
        synchronise(worker); /* before the memory that is being read changes */
        return;
    }
    if (total == 0)
        for (const struct share *each = share; each->step; each++)
            total += each->weight;
    uint64_t at = random_below(worker, total);
    while (at >= share->weight)
        at -= share++->weight;
    share->step(worker);
}
