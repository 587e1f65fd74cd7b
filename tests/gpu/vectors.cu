/*
 * Uses the CUDA runtime in most ways that a tracer must handle: copies in every direction, two streams, sets,
 * a thousand launches of C++ kernels, a cooperative launch, launch attributes, a captured graph and a launch
 * that fails.
 *
 * Checks every result on the host and prints checksums that are the same on every run and every machine, so
 * that run.py can compare a traced run with an untraced one byte for byte. All arithmetic uses unsigned
 * integers.
 */
#include <cooperative_groups.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        cudaError_t error_ = (call);                                                                         \
        if (error_ != cudaSuccess) {                                                                         \
            fprintf(stderr, "vectors: line %d: %s\n", __LINE__, cudaGetErrorName(error_));                   \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

namespace
{

constexpr uint32_t count = 1u << 16;
constexpr size_t bytes = count * sizeof(uint32_t);
constexpr unsigned block = 256;
constexpr unsigned grid = count / block;
constexpr int launch_rounds = 250; /* each launches four kernels */
constexpr int graph_kernels = 20;
constexpr int graph_replays = 50;

using vector = std::vector<uint32_t>;

} // namespace

extern "C" __global__ void plain_add(uint32_t *to, const uint32_t *from)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] += from[i];
}

template <typename T, T Factor> __global__ void scale(T *to)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = to[i] * Factor + 1;
}

namespace mixing
{

struct rotate {
    unsigned bits;
    __host__ __device__ uint32_t operator()(uint32_t x) const { return (x << bits) | (x >> (32 - bits)); }
};

template <typename Function> __global__ void apply(uint32_t *to, Function function)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = function(to[i]);
}

__global__ void stir(uint32_t *to, uint32_t with)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] ^= with + i;
}

} // namespace mixing

/* Every block reads values that other blocks wrote before the barrier. This only works if all blocks run at
 * once. */
__global__ void cooperative_swap(uint32_t *to, uint32_t *scratch, uint32_t n)
{
    cooperative_groups::grid_group all = cooperative_groups::this_grid();
    for (uint64_t i = all.thread_rank(); i < n; i += all.size())
        scratch[i] = to[i] + 7;
    all.sync();
    for (uint64_t i = all.thread_rank(); i < n; i += all.size())
        to[i] = scratch[n - 1 - i];
}

__global__ void attributed(uint32_t *to)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = to[i] * 3 + 5;
}

__global__ void graph_step(uint32_t *to, uint32_t step)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = to[i] * 1664525u + 1013904223u + step;
}

static uint32_t checksum(const vector &values)
{
    uint32_t sum = 2166136261u;
    for (uint32_t value : values)
        sum = (sum ^ value) * 16777619u;
    return sum;
}

/* Compares with the host's result and prints one `name=checksum` of the line. */
static void report(const char *name, const vector &got, const vector &expected)
{
    if (got != expected) {
        fprintf(stderr, "vectors: %s: wrong result\n", name);
        exit(1);
    }
    printf("%s=%08x ", name, checksum(got));
}

static vector counted(uint32_t factor)
{
    vector values(count);
    for (uint32_t i = 0; i < count; i++)
        values[i] = i * factor + 1;
    return values;
}

static vector from_device(const uint32_t *device)
{
    vector values(count);
    CHECK(cudaMemcpy(values.data(), device, bytes, cudaMemcpyDeviceToHost));
    return values;
}

/* Copies in the three directions from pageable memory, and sets. */
static void copies_and_sets(uint32_t *a, uint32_t *b)
{
    const vector start = counted(2654435761u);
    CHECK(cudaMemcpy(a, start.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(b, 0x5a, bytes));
    CHECK(cudaMemcpy(b + count / 2, a, bytes / 2, cudaMemcpyDeviceToDevice));
    CHECK(cudaMemsetAsync(b, 0, 4096));

    vector expected(count, 0x5a5a5a5au);
    for (uint32_t i = 0; i < count / 2; i++)
        expected[count / 2 + i] = start[i];
    for (uint32_t i = 0; i < 1024; i++)
        expected[i] = 0;
    report("copies", from_device(b), expected);
}

/* Pinned memory through two streams, ordered by an event. */
static void streams(uint32_t *a, uint32_t *b)
{
    uint32_t *pinned[2];
    cudaStream_t stream[2];
    cudaEvent_t copied, begun, ended;
    for (int s = 0; s < 2; s++) {
        CHECK(cudaMallocHost(&pinned[s], bytes));
        CHECK(cudaStreamCreateWithFlags(&stream[s], cudaStreamNonBlocking));
    }
    CHECK(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
    CHECK(cudaEventCreate(&begun));
    CHECK(cudaEventCreate(&ended));

    const vector first = counted(3), second = counted(5);
    for (uint32_t i = 0; i < count; i++) {
        pinned[0][i] = first[i];
        pinned[1][i] = second[i];
    }
    CHECK(cudaEventRecord(begun, stream[0]));
    CHECK(cudaMemcpyAsync(a, pinned[0], bytes, cudaMemcpyHostToDevice, stream[0]));
    CHECK(cudaMemcpyAsync(b, pinned[1], bytes, cudaMemcpyHostToDevice, stream[1]));
    CHECK(cudaEventRecord(copied, stream[1]));
    CHECK(cudaStreamWaitEvent(stream[0], copied, 0));
    plain_add<<<grid, block, 0, stream[0]>>>(a, b);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(b, a, bytes, cudaMemcpyDeviceToDevice, stream[0]));
    CHECK(cudaMemcpyAsync(pinned[0], b, bytes, cudaMemcpyDeviceToHost, stream[0]));
    CHECK(cudaEventRecord(ended, stream[0]));
    CHECK(cudaEventSynchronize(ended));
    CHECK(cudaStreamSynchronize(stream[1]));

    float elapsed_ms = -1;
    CHECK(cudaEventElapsedTime(&elapsed_ms, begun, ended));
    vector got(pinned[0], pinned[0] + count), expected(count);
    for (uint32_t i = 0; i < count; i++)
        expected[i] = first[i] + second[i];
    report(elapsed_ms >= 0 ? "streams" : "streams-without-time", got, expected);

    CHECK(cudaEventDestroy(ended));
    CHECK(cudaEventDestroy(begun));
    CHECK(cudaEventDestroy(copied));
    for (int s = 0; s < 2; s++) {
        CHECK(cudaStreamDestroy(stream[s]));
        CHECK(cudaFreeHost(pinned[s]));
    }
}

static void thousand_launches(uint32_t *a)
{
    const mixing::rotate by_five = { 5 };
    vector expected = counted(7);
    CHECK(cudaMemcpy(a, expected.data(), bytes, cudaMemcpyHostToDevice));
    for (uint32_t round = 0; round < launch_rounds; round++) {
        scale<uint32_t, 3><<<grid, block>>>(a);
        mixing::stir<<<grid, block>>>(a, round);
        mixing::apply<<<grid, block>>>(a, by_five);
        scale<uint32_t, 9><<<grid, block>>>(a);
    }
    CHECK(cudaGetLastError());
    for (uint32_t i = 0; i < count; i++) {
        uint32_t x = expected[i];
        for (uint32_t round = 0; round < launch_rounds; round++) {
            x = x * 3 + 1;
            x ^= round + i;
            x = by_five(x);
            x = x * 9 + 1;
        }
        expected[i] = x;
    }
    report("launches", from_device(a), expected);
}

static void cooperative(uint32_t *a, uint32_t *scratch)
{
    const vector start = counted(11);
    CHECK(cudaMemcpy(a, start.data(), bytes, cudaMemcpyHostToDevice));
    int multiprocessors = 0, per_multiprocessor = 0;
    CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, cooperative_swap, block, 0));
    const unsigned resident = (unsigned)(multiprocessors * per_multiprocessor);
    const dim3 blocks(resident < grid ? resident : grid);
    uint32_t n = count;
    void *arguments[] = { &a, &scratch, &n };
    CHECK(cudaLaunchCooperativeKernel((const void *)cooperative_swap, blocks, dim3(block), arguments, 0, 0));

    vector expected(count);
    for (uint32_t i = 0; i < count; i++)
        expected[i] = start[count - 1 - i] + 7;
    report("cooperative", from_device(a), expected);
}

/* A launch by cudaLaunchKernelEx, with clusters where the device has them (Hopper and newer). */
static void attributes(uint32_t *a)
{
    const vector start = counted(13);
    CHECK(cudaMemcpy(a, start.data(), bytes, cudaMemcpyHostToDevice));
    int has_clusters = 0;
    CHECK(cudaDeviceGetAttribute(&has_clusters, cudaDevAttrClusterLaunch, 0));

    cudaLaunchAttribute attribute[2] = {};
    attribute[0].id = cudaLaunchAttributePriority;
    attribute[0].val.priority = 0;
    attribute[1].id = cudaLaunchAttributeClusterDimension;
    attribute[1].val.clusterDim.x = 2;
    attribute[1].val.clusterDim.y = 1;
    attribute[1].val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(grid);
    config.blockDim = dim3(block);
    config.attrs = attribute;
    config.numAttrs = has_clusters ? 2 : 1;
    CHECK(cudaLaunchKernelEx(&config, attributed, a));

    vector expected(count);
    for (uint32_t i = 0; i < count; i++)
        expected[i] = start[i] * 3 + 5;
    report("attributes", from_device(a), expected);
}

static void captured_graph(uint32_t *a)
{
    vector expected = counted(17);
    CHECK(cudaMemcpy(a, expected.data(), bytes, cudaMemcpyHostToDevice));
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t runnable;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (uint32_t step = 0; step < graph_kernels; step++) {
        if (step % 4 == 3)
            mixing::stir<<<grid, block, 0, stream>>>(a, step);
        else
            graph_step<<<grid, block, 0, stream>>>(a, step);
    }
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&runnable, graph, 0));
    for (int replay = 0; replay < graph_replays; replay++)
        CHECK(cudaGraphLaunch(runnable, stream));
    CHECK(cudaStreamSynchronize(stream));

    for (uint32_t i = 0; i < count; i++)
        for (int replay = 0; replay < graph_replays; replay++)
            for (uint32_t step = 0; step < graph_kernels; step++)
                expected[i] =
                    step % 4 == 3 ? expected[i] ^ (step + i) : expected[i] * 1664525u + 1013904223u + step;
    report("graph", from_device(a), expected);
    CHECK(cudaGraphExecDestroy(runnable));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaStreamDestroy(stream));
}

/* No device runs a block of 4096 threads. The error is not sticky, and no kernel runs. */
static void failing_launch(uint32_t *a)
{
    void *arguments[] = { &a };
    cudaError_t error = cudaLaunchKernel((const void *)attributed, dim3(1), dim3(4096), arguments, 0, 0);
    printf("failing=%s ", cudaGetErrorName(error));
    if (error == cudaSuccess || cudaGetLastError() != error)
        exit(1);
    report("after", from_device(a), from_device(a));
}

int main()
{
    uint32_t *a, *b;
    CHECK(cudaMalloc(&a, bytes));
    CHECK(cudaMalloc(&b, bytes));
    printf("vectors: ");
    copies_and_sets(a, b);
    streams(a, b);
    thousand_launches(a);
    cooperative(a, b);
    attributes(a);
    captured_graph(a);
    failing_launch(a);
    printf("ok\n");
    CHECK(cudaFree(b));
    CHECK(cudaFree(a));
    return 0;
}
