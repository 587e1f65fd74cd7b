/*
 * selftest_entry.c: what concerns all functions alike: exports, cuGetProcAddress, initialisation, forks,
 * counting, latency, failures, blocking and the checksum mode.
 */
#include "selftest.h"
#include "simcuda_verify.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const names[] = {
#define ROW(name, ...) #name,
#include "driver_api.def"
#undef ROW
};
enum { NAME_COUNT = sizeof names / sizeof *names };

static void *address_of(const char *name)
{
    void *address = dlsym(RTLD_DEFAULT, name);
    if (!address)
        fprintf(stderr, "%s is not exported\n", name);
    CHECK(address);
    return address;
}

static int compare_addresses(const void *a, const void *b)
{
    const uintptr_t left = *(const uintptr_t *)a, right = *(const uintptr_t *)b;
    return (left > right) - (left < right);
}

static void every_function_has_an_address_of_its_own(void)
{
    static uintptr_t addresses[NAME_COUNT];
    CHECK(NAME_COUNT == 682);
    for (size_t i = 0; i < NAME_COUNT; i++)
        addresses[i] = (uintptr_t)address_of(names[i]);
    qsort(addresses, NAME_COUNT, sizeof *addresses, compare_addresses);
    for (size_t i = 1; i < NAME_COUNT; i++)
        CHECK(addresses[i] != addresses[i - 1]);
}

static void every_query_of_cudart_resolves(void)
{
    char path[4096], line[256], name[128];
    snprintf(path, sizeof path, "%s/cudart-13.0.procaddress.tsv", source_folder());
    FILE *file = fopen(path, "r");
    CHECK(file);
    int queries = 0, version;
    unsigned long flags;
    while (fgets(line, sizeof line, file)) {
        void *address = NULL;
        CUdriverProcAddressQueryResult status = 9;
        if (line[0] == '#' || sscanf(line, "%127s %d %lu", name, &version, &flags) != 3)
            continue;
        OK(cuGetProcAddress(name, &address, version, flags, &status));
        CHECK(address && status == CU_GET_PROC_ADDRESS_SUCCESS);
        queries++;
    }
    fclose(file);
    CHECK(queries == 439);
}

static void expect_export(const char *base, int version, uint64_t flags, const char *export)
{
    void *address = NULL;
    OK(cuGetProcAddress(base, &address, version, flags, NULL));
    CHECK(address == address_of(export));
}

static void versions_and_streams_choose_the_export(void)
{
    expect_export("cuMemAlloc", 2000, 0, "cuMemAlloc");
    expect_export("cuMemAlloc", 3019, 0, "cuMemAlloc");
    expect_export("cuMemAlloc", 3020, 0, "cuMemAlloc_v2");
    expect_export("cuMemAlloc", 13000, 0, "cuMemAlloc_v2");
    expect_export("cuGraphInstantiate", 12000, 0, "cuGraphInstantiate_v2");
    expect_export("cuCtxGetDevice", 12090, 0, "cuCtxGetDevice");
    expect_export("cuCtxGetDevice", 13000, 0, "cuCtxGetDevice_v2");
    expect_export("cuGetProcAddress", 11030, 0, "cuGetProcAddress");
    expect_export("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2");
    expect_export("cuLaunchKernel", 7000, 0, "cuLaunchKernel");
    expect_export("cuLaunchKernel", 7000, 1, "cuLaunchKernel");
    expect_export("cuLaunchKernel", 7000, 2, "cuLaunchKernel_ptsz");
    expect_export("cuMemcpyHtoD", 13000, 2, "cuMemcpyHtoD_v2_ptds");
    expect_export("cuMemAlloc", -1, 0, "cuMemAlloc_v2");
}

static void unknown_names_and_versions_are_told_apart(void)
{
    CUresult (*old)(const char *, void **, int, uint64_t) =
        (CUresult(*)(const char *, void **, int, uint64_t))dlsym(RTLD_DEFAULT, "cuGetProcAddress");
    CUdriverProcAddressQueryResult status = 9;
    void *address = &status;
    OK(cuGetProcAddress("", &address, 0, 0, NULL));
    CHECK(!address);
    OK(cuGetProcAddress("cuNonsense", &address, 13000, 0, &status));
    CHECK(!address && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    OK(cuGetProcAddress("cuMemAlloc_v2", &address, 13000, 0, &status));
    CHECK(!address && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    OK(cuGetProcAddress("cuMemAllocAsync", &address, 10000, 0, &status));
    CHECK(!address && status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    OK(cuGetProcAddress("cuLaunchKernel", &address, 4000, 2, &status));
    CHECK(!address && status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    address = &status;
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuMemAlloc", &address, 13010, 0, &status));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuMemAlloc", &address, 13000, 4, &status));
    CHECK_RESULT(CUDA_ERROR_NOT_FOUND, old("cuNonsense", &address, 13000, 0));
    CHECK(address == &status);
    OK(old("cuMemAlloc", &address, 11030, 0));
    CHECK(address == address_of("cuMemAlloc_v2"));
}

static void nothing_works_before_init(void)
{
    int number;
    const char *text;
    CUcontext context;
    CHECK_RESULT(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&number));
    CHECK_RESULT(CUDA_ERROR_NOT_INITIALIZED, cuCtxGetCurrent(&context));
    CHECK_RESULT(CUDA_ERROR_NOT_INITIALIZED, cuCtxSynchronize());
    OK(cuDriverGetVersion(&number));
    CHECK(number == 13000);
    OK(cuGetErrorName(CUDA_ERROR_NOT_INITIALIZED, &text));
    CHECK(!strcmp(text, "CUDA_ERROR_NOT_INITIALIZED"));
    OK(cuGetErrorString(CUDA_ERROR_NOT_INITIALIZED, &text));
    CHECK(!strcmp(text, "initialization error"));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuGetErrorName((CUresult)-1, &text));
    CHECK_RESULT(CUDA_ERROR_INVALID_VALUE, cuInit(1));
    OK(cuInit(0));
    OK(cuDeviceGetCount(&number));
    CHECK(number == 1);
}

static void no_device_fails_at_init(void)
{
    CHECK_RESULT(CUDA_ERROR_NO_DEVICE, cuInit(0));
}

static void functions_without_a_model_say_so(void)
{
    CUresult (*create)(void *, size_t, void *, uint64_t) =
        (CUresult(*)(void *, size_t, void *, uint64_t))address_of("cuMemCreate");
    start();
    CHECK_RESULT(CUDA_ERROR_NOT_SUPPORTED, create(NULL, 0, NULL, 0));
}

static int in_child(int (*body)(void))
{
    const pid_t child = fork();
    if (child == 0)
        _exit(body());
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int child_is_refused(void)
{
    int number;
    CUcontext context;
    return cuInit(0) != CUDA_ERROR_NOT_INITIALIZED ||
           cuCtxGetCurrent(&context) != CUDA_ERROR_NOT_INITIALIZED ||
           cuDeviceGetCount(&number) != CUDA_ERROR_NOT_INITIALIZED ||
           cuDriverGetVersion(&number) != CUDA_SUCCESS;
}

static void a_forked_child_is_refused(void)
{
    start();
    CHECK(in_child(child_is_refused) == 0);
}

static int child_works(void)
{
    CUdeviceptr address;
    return cuMemAlloc(&address, 64) != CUDA_SUCCESS || cuMemsetD8(address, 7, 64) != CUDA_SUCCESS;
}

static int child_starts(void)
{
    start();
    return child_works();
}

static void a_child_forked_before_init_works(void)
{
    CHECK(in_child(child_starts) == 0);
}

static void a_forked_child_works_where_told(void)
{
    start();
    CHECK(in_child(child_works) == 0);
}

/* ---- Counting. */

struct pair {
    uint64_t entered, returned;
};

static size_t row_of(const char *name)
{
    for (size_t i = 0; i < NAME_COUNT; i++)
        if (!strcmp(names[i], name))
            return i;
    fprintf(stderr, "%s: no such function\n", name);
    exit(1);
}

/* Sums a function's counters over all files; returns how many files there are. */
static int read_counts(const char *name, struct pair *sum)
{
    int files = 0;
    DIR *dir = opendir(getenv("SIMCUDA_COUNTS"));
    CHECK(dir);
    *sum = (struct pair){ 0 };
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct pair pair;
        if (!strstr(entry->d_name, ".counts"))
            continue;
        const int fd = open(temporary(entry->d_name), O_RDONLY);
        CHECK(pread(fd, &pair, sizeof pair, (off_t)(16 + row_of(name) * sizeof pair)) == sizeof pair);
        close(fd);
        sum->entered += pair.entered;
        sum->returned += pair.returned;
        files++;
    }
    closedir(dir);
    return files;
}

static int count_five(void)
{
    int number;
    for (int i = 0; i < 5; i++)
        cuDriverGetVersion(&number);
    return 0;
}

static int make_no_call(void)
{
    return 0;
}

static void each_process_counts_its_calls(void)
{
    struct pair pair;
    int number;
    OK(cuInit(0));
    for (int i = 0; i < 10; i++)
        OK(cuDriverGetVersion(&number));
    CHECK(read_counts("cuDriverGetVersion", &pair) == 1 && pair.entered == 10 && pair.returned == 10);
    CHECK(in_child(make_no_call) == 0);
    CHECK(read_counts("cuInit", &pair) == 1);
    CHECK(in_child(count_five) == 0);
    CHECK(read_counts("cuDriverGetVersion", &pair) == 2 && pair.entered == 15 && pair.returned == 15);
    CHECK(read_counts("cuMemAlloc_v2", &pair) == 2 && pair.entered == 0);
}

/* ---- Latency, failures, blocking. */

static void latency_is_kept(void)
{
    CUcontext context;
    start();
    int64_t before = now_ns();
    OK(cuCtxGetCurrent(&context));
    CHECK(now_ns() - before >= 2000000);
    before = now_ns();
    for (int i = 0; i < 10; i++)
        OK(cuCtxSetCurrent(context));
    CHECK(now_ns() - before >= 10 * 10000);
}

static void failures_come_when_asked_for(void)
{
    CUdeviceptr address;
    int number;
    start();
    for (int call = 1; call <= 6; call++)
        CHECK_RESULT(call == 3 || call == 4 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS,
                     cuMemAlloc(&address, 16));
    for (int call = 1; call <= 6; call++)
        CHECK_RESULT(call >= 5 ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS, cuDeviceGetCount(&number));
}

static void a_blocked_call_is_told_and_stays(void)
{
    struct pair pair;
    char byte = 0;
    CHECK(mkfifo(getenv("SIMCUDA_BLOCK_NOTIFY"), 0600) == 0);
    const pid_t child = fork();
    if (child == 0) {
        start();
        cuCtxSynchronize();
        _exit(0);
    }
    const int fd = open(getenv("SIMCUDA_BLOCK_NOTIFY"), O_RDONLY);
    CHECK(read(fd, &byte, 1) == 1 && byte == 'b');
    close(fd);
    CHECK(waitpid(child, NULL, WNOHANG) == 0);
    kill(child, SIGKILL);
    CHECK(waitpid(child, NULL, 0) == child);
    CHECK(read_counts("cuCtxSynchronize", &pair) == 1 && pair.entered == 1 && pair.returned == 0);
}

static void a_blocked_call_can_be_released(void)
{
    CHECK(mkfifo(getenv("SIMCUDA_BLOCK_NOTIFY"), 0600) == 0 &&
          mkfifo(getenv("SIMCUDA_BLOCK_RELEASE"), 0600) == 0);
    const pid_t child = fork();
    if (child == 0) {
        char byte;
        const int notify = open(getenv("SIMCUDA_BLOCK_NOTIFY"), O_RDONLY);
        const bool told = read(notify, &byte, 1) == 1;
        const int release = open(getenv("SIMCUDA_BLOCK_RELEASE"), O_WRONLY);
        _exit(!told || write(release, "r", 1) != 1);
    }
    int status;
    start();
    OK(cuCtxSynchronize());
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* ---- The checksum mode. */

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
    CHECK(simcuda_last_call(&last, &found, &misaligned) == 0);
    if (strcmp(last, name) != 0 || found != sum || misaligned || result != simcuda_checksum_result(sum))
        fprintf(stderr, "%s: %s %llx %llx %d %d\n", name, last, (unsigned long long)found,
                (unsigned long long)sum, misaligned, result);
    CHECK(!strcmp(last, name) && found == sum && !misaligned && result == simcuda_checksum_result(sum));
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

/* Sixteen words serve all functions of integers: what a function does not take, it does not look at. */
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
    CHECK(called > 660);
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

    sum = simcuda_checksum_word(simcuda_checksum_start("cuIpcOpenEventHandle"), 9);
    sum = simcuda_checksum_words(sum, bytes.words, 8);
    int32_t (*open_event)(void *, struct bytes64) =
        (int32_t(*)(void *, struct bytes64))address_of("cuIpcOpenEventHandle");
    expect_call("cuIpcOpenEventHandle", sum, open_event((void *)9, bytes));

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

static uint64_t double_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void floats_and_vector_registers_arrive(void)
{
    uint64_t vectors[SIMCUDA_VECTORS];
    uint64_t sum = simcuda_checksum_word(simcuda_checksum_start("cuParamSetf"), 7);
    sum = simcuda_checksum_word(simcuda_checksum_word(sum, 0xfffffffeu), float_bits(-1.5f));
    int32_t (*set)(void *, int, float, double, double, double, double, double, double, double) = (int32_t(*)(
        void *, int, float, double, double, double, double, double, double, double))address_of("cuParamSetf");
    expect_call("cuParamSetf", sum, set((void *)7, -2, -1.5f, 1, 2, 3, 4, 5, 6, 7));
    simcuda_last_vectors(vectors);
    CHECK(vectors[0] == float_bits(-1.5f));
    for (int i = 1; i < SIMCUDA_VECTORS; i++)
        CHECK(vectors[i] == double_bits(i));

    sum = simcuda_checksum_word(simcuda_checksum_start("cuTexRefSetMipmapLevelClamp"), 7);
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
    /* The red zone of this frame lies below the stack pointer, so step over it. */
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
    CHECK(simcuda_last_call(NULL, NULL, &misaligned) == 0 && misaligned);
#endif
}

static void past_calls_are_remembered(void)
{
    const char *name;
    CHECK(simcuda_last_call(&name, NULL, NULL) == -1);
    cuInit(0);
    cuCtxSynchronize();
    CHECK(simcuda_past_call(1, &name, NULL, NULL) == 0 && !strcmp(name, "cuInit"));
    CHECK(simcuda_past_call(2, &name, NULL, NULL) == -1);
}

const struct selftest entry_tests[] = {
    { "exports", every_function_has_an_address_of_its_own, NULL },
    { "procaddress-cudart", every_query_of_cudart_resolves, NULL },
    { "procaddress-choice", versions_and_streams_choose_the_export, NULL },
    { "procaddress-unknown", unknown_names_and_versions_are_told_apart, NULL },
    { "init-order", nothing_works_before_init, NULL },
    { "init-no-device", no_device_fails_at_init, "SIMCUDA_DEVICES=0" },
    { "not-modelled", functions_without_a_model_say_so, NULL },
    { "fork-refused", a_forked_child_is_refused, NULL },
    { "fork-before-init", a_child_forked_before_init_works, NULL },
    { "fork-works", a_forked_child_works_where_told, "SIMCUDA_FORK=works" },
    { "counts", each_process_counts_its_calls, "SIMCUDA_COUNTS=$TMP" },
    { "latency", latency_is_kept, "SIMCUDA_LATENCY=cuCtxGetCurrent=2000000 SIMCUDA_LATENCY_NS=10000" },
    { "failures", failures_come_when_asked_for, "SIMCUDA_FAIL=cuMemAlloc_v2:2:3:2,cuDeviceGetCount:999:5" },
    { "block", a_blocked_call_is_told_and_stays,
      "SIMCUDA_COUNTS=$TMP SIMCUDA_BLOCK=cuCtxSynchronize SIMCUDA_BLOCK_NOTIFY=$TMP/notify" },
    { "block-release", a_blocked_call_can_be_released,
      "SIMCUDA_BLOCK=cuCtxSynchronize SIMCUDA_BLOCK_NOTIFY=$TMP/notify SIMCUDA_BLOCK_RELEASE=$TMP/release" },
    { "verify-integers", every_argument_arrives, "SIMCUDA_VERIFY=checksum" },
    { "verify-structs", structs_by_value_arrive, "SIMCUDA_VERIFY=checksum" },
    { "verify-floats", floats_and_vector_registers_arrive, "SIMCUDA_VERIFY=checksum" },
    { "verify-stack", a_misaligned_stack_is_noticed, "SIMCUDA_VERIFY=checksum" },
    { "verify-past", past_calls_are_remembered, "SIMCUDA_VERIFY=checksum" },
    { NULL, NULL, NULL },
};
