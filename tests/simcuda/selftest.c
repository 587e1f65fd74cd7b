/* selftest.c: tests properties of the simulated driver that the hook's tests rely on without checking them.
 * In checksum mode, the driver must see every argument, and detect a misaligned stack. A call that the real
 * driver forbids during a stream capture must invalidate that capture.
 *
 *     simcuda-selftest verify | capture | observe */
#include "../ensure.h"
#include "cuda_min.h"
#include "simcuda_observe.h"
#include "simcuda_verify.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define OK(call) EXPECT(CUDA_SUCCESS, call)

/* ---- The checksum mode. */

static void *address_of(const char *name)
{
    void *address = dlsym(RTLD_DEFAULT, name);
    ENSURE(address);
    return address;
}

static const struct signature {
    const char *name, *letters;
} signatures[] = {
#define SIG(name, letters) { #name, letters },
#include "../signatures.def"
#undef SIG
};

static void expect_call(const char *name, uint64_t sum, int32_t result)
{
    const char *last;
    uint64_t found;
    int misaligned;
    ENSURE(simcuda_past_call(0, &last, &found, &misaligned) == 0);
    if (strcmp(last, name) != 0 || found != sum || misaligned || result != simcuda_checksum_result(sum))
        fprintf(stderr, "%s: %s %llx %llx %d %d\n", name, last, (unsigned long long)found,
                (unsigned long long)sum, misaligned, result);
    ENSURE(!strcmp(last, name) && found == sum && !misaligned && result == simcuda_checksum_result(sum));
}

static uint64_t masked(char letter, uint64_t word)
{
    switch (letter) {
    case 'i':
        return (uint32_t)word;
    case 'h':
        return (uint16_t)word;
    case 'c':
        return (uint8_t)word;
    default:
        return word;
    }
}

/* Sixteen words cover the arguments of every function that takes only integers. A function ignores any words
 * after its own arguments. */
typedef int32_t integers(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                         uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

static void every_argument_arrives(void)
{
    uint64_t w[16];
    for (size_t i = 0; i < 16; i++)
        w[i] = 0xf1e2d3c4b5a69788u + i * 0x0101010101010101u;
    size_t called = 0;
    for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++) {
        const char *name = signatures[i].name, *letters = signatures[i].letters;
        if (strpbrk(letters, "fdS") || !strncmp(name, "cudbg", 5))
            continue;
        uint64_t sum = simcuda_checksum_start(name);
        for (size_t j = 0; letters[j]; j++)
            sum = simcuda_checksum_word(sum, masked(letters[j], w[j]));
        integers *function = (integers *)address_of(name);
        const int32_t result = function(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10],
                                        w[11], w[12], w[13], w[14], w[15]);
        expect_call(name, sum, result);
        called++;
    }
    ENSURE(called > 660);
}

struct bytes64 {
    uint64_t words[8];
};

static void structs_by_value_arrive(void)
{
    const struct bytes64 bytes = { { 1, 2, 3, 4, 5, 6, 7, 0x8877665544332211u } };
    uint64_t sum =
        simcuda_checksum_word(simcuda_checksum_start("cuIpcOpenMemHandle_v2"), 0x1111222233334444u);
    sum = simcuda_checksum_word(simcuda_checksum_words(sum, bytes.words, 8), 0x55667788u);
    int32_t (*open_memory)(void *, struct bytes64, unsigned) =
        (int32_t(*)(void *, struct bytes64, unsigned))address_of("cuIpcOpenMemHandle_v2");
    expect_call("cuIpcOpenMemHandle_v2", sum, open_memory((void *)0x1111222233334444u, bytes, 0x55667788u));

    sum = simcuda_checksum_word(simcuda_checksum_start("cuEGLStreamProducerPresentFrame"), 9);
    sum = simcuda_checksum_word(simcuda_checksum_words(sum, bytes.words, 8), 10);
    int32_t (*present)(void *, struct bytes64, void *) =
        (int32_t(*)(void *, struct bytes64, void *))address_of("cuEGLStreamProducerPresentFrame");
    expect_call("cuEGLStreamProducerPresentFrame", sum, present((void *)9, bytes, (void *)10));
}

static uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void floats_arrive(void)
{
    uint64_t sum = simcuda_checksum_word(simcuda_checksum_start("cuTexRefSetMipmapLevelClamp"), 7);
    sum = simcuda_checksum_word(simcuda_checksum_word(sum, float_bits(0.25f)), float_bits(9.75f));
    int32_t (*clamp)(void *, float, float) =
        (int32_t(*)(void *, float, float))address_of("cuTexRefSetMipmapLevelClamp");
    expect_call("cuTexRefSetMipmapLevelClamp", sum, clamp((void *)7, 0.25f, 9.75f));
}

static void a_misaligned_stack_is_noticed(void)
{
#ifdef __x86_64__
    int misaligned = 0;
    void *function = address_of("cuCtxSynchronize");
    /* Skip this frame's red zone, which is just below the stack pointer. */
    __asm__ volatile("movq %%rsp, %%rbx\n\t"
                     "subq $256, %%rsp\n\t"
                     "andq $-16, %%rsp\n\t"
                     "subq $8, %%rsp\n\t"
                     "call *%0\n\t"
                     "movq %%rbx, %%rsp"
                     : "+a"(function)
                     :
                     : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2",
                       "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
                       "xmm13", "xmm14", "xmm15", "memory", "cc");
    ENSURE(simcuda_past_call(0, NULL, NULL, &misaligned) == 0 && misaligned);
#endif
}

/* ---- Captures. */

static CUdeviceptr memory;
static CUstream stream;
static CUfunction function;

static CUresult launch(unsigned grid, CUstream on)
{
    return cuLaunchKernel(function, grid, 1, 1, 1, 1, 1, 0, on, NULL, NULL);
}

static void prepare(void)
{
    CUcontext context;
    CUmodule module;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuModuleLoadData(&module, "image"));
    OK(cuModuleGetFunction(&function, module, "anything"));
    OK(cuMemAlloc(&memory, 4096));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

static CUresult end(void)
{
    CUgraph graph = NULL;
    const CUresult result = cuStreamEndCapture(stream, &graph);
    ENSURE((result == CUDA_SUCCESS) == (graph != NULL));
    return result;
}

static CUresult capture_status(void)
{
    CUstreamCaptureStatus status;
    OK(cuStreamIsCapturing(stream, &status));
    return (CUresult)status;
}

/* Begins a capture, makes a call that must invalidate the capture with the given result, and checks that it
 * did. */
#define SPOILS(mode, expected, call)                                                                         \
    do {                                                                                                     \
        OK(cuStreamBeginCapture(stream, mode));                                                              \
        EXPECT(expected, call);                                                                              \
        ENSURE(capture_status() == (CUresult)CU_STREAM_CAPTURE_STATUS_INVALIDATED);                          \
        EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, launch(1, stream));                                    \
        EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end());                                                \
        ENSURE(capture_status() == (CUresult)CU_STREAM_CAPTURE_STATUS_NONE);                                 \
    } while (0)

#define SPARES(mode, call)                                                                                   \
    do {                                                                                                     \
        OK(cuStreamBeginCapture(stream, mode));                                                              \
        OK(call);                                                                                            \
        OK(end());                                                                                           \
    } while (0)

static void what_spoils_a_capture_on_the_real_driver_does_here(void)
{
    const CUstreamCaptureMode global = CU_STREAM_CAPTURE_MODE_GLOBAL,
                              relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUdeviceptr other;
    CUevent event;
    CUstream second;
    char byte;
    OK(cuEventCreate(&event, 0));
    OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    SPOILS(global, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(stream));
    SPOILS(global, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery(stream));
    SPOILS(relaxed, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery(stream));
    SPOILS(global, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(second));
    SPARES(relaxed, cuStreamSynchronize(second));
    SPOILS(global, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxSynchronize());
    SPOILS(relaxed, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxSynchronize());
    SPOILS(global, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&other, 4));
    SPARES(relaxed, cuMemAlloc(&other, 4));
    SPOILS(global, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuEventQuery(event));
    SPOILS(global, CUDA_ERROR_INVALID_VALUE, launch(0, stream));
    SPARES(global, cuMemcpyDtoH(&byte, memory, 1));
    SPARES(global, cuEventCreate(&event, 0));
    SPARES(global, cuMemcpyDtoHAsync(&byte, memory, 1, stream));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture(NULL, global));
    EXPECT(CUDA_ERROR_ILLEGAL_STATE, end());
    OK(cuStreamBeginCapture(stream, global));
    EXPECT(CUDA_ERROR_ILLEGAL_STATE, cuStreamBeginCapture(stream, global));
    OK(end());
}

static void the_legacy_stream_spoils_captures_of_blocking_ones(void)
{
    CUstreamCaptureStatus status;
    OK(cuStreamDestroy(stream));
    OK(cuStreamCreate(&stream, 0));
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(NULL, &status));
    ENSURE(capture_status() == (CUresult)CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, launch(1, NULL));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end());
}

static void *allocate_elsewhere(void *expected)
{
    CUdeviceptr other;
    CUcontext context;
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    EXPECT((CUresult)(intptr_t)expected, cuMemAlloc(&other, 4));
    return NULL;
}

static void in_thread(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    ENSURE(pthread_create(&thread, NULL, body, argument) == 0 && pthread_join(thread, NULL) == 0);
}

static void captures_reach_other_threads_by_their_mode(void)
{
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    in_thread(allocate_elsewhere, (void *)(intptr_t)CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, end());
    OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    in_thread(allocate_elsewhere, (void *)(intptr_t)CUDA_SUCCESS);
    OK(end());
}

static int observed_calls[2]; /* the numbers of calls that began and that ended */

static uint64_t observe_begin(const char *name)
{
    ENSURE(name);
    return (uint64_t)++observed_calls[0];
}

static void observe_end(const char *name, uint64_t correlation)
{
    ENSURE(name && correlation != 0);
    observed_calls[1]++;
}

/* Calls the driver in the middle of the call that does the work, as a signal handler could. */
static void call_within(const struct sim_work *work)
{
    int version;
    ENSURE(work->correlation == 1);
    OK(cuDriverGetVersion(&version));
}

static void an_interrupted_call_is_observed_to_its_end(void)
{
    static const struct sim_observer observer = { observe_begin, observe_end, call_within };
    simcuda_observe(&observer);
    OK(cuMemsetD8Async(memory, 0, 4, stream));
    simcuda_observe(NULL);
    ENSURE(observed_calls[0] == 2 && observed_calls[1] == 2);
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "verify")) {
        setenv("SIMCUDA_VERIFY", "checksum", 1);
        every_argument_arrives();
        structs_by_value_arrive();
        floats_arrive();
        a_misaligned_stack_is_noticed();
    } else if (argc == 2 && !strcmp(argv[1], "observe")) {
        prepare();
        an_interrupted_call_is_observed_to_its_end();
    } else {
        prepare();
        what_spoils_a_capture_on_the_real_driver_does_here();
        captures_reach_other_threads_by_their_mode();
        the_legacy_stream_spoils_captures_of_blocking_ones();
    }
    return 0;
}
