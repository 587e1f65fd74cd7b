/* objects.c: makes calls on every kind of object, with recognizable arguments. For each call, prints what the
 * trace must contain: the call's name and status, role=handle in order, and bytes=N. Then prints the rows of
 * `allocations` and `event_waits`. "arguments" and "memory" are for a driver whose functions do nothing and
 * return the status in SIMCUDA_VERIFY. "streams" makes real calls, some of them captured. "lookups" makes
 * real calls whose number of bytes only the driver knows. */
#include "objects.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <string.h>

bool fails;
void *objects_driver;

typedef CUresult any_function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                              uint64_t, uint64_t);

static bool is_wanted(const struct want *want, CUresult status)
{
    return want->when == ALWAYS || want->when == (status == CUDA_SUCCESS ? AFTER_SUCCESS : AFTER_FAILURE);
}

void object_said(const char *name, CUresult status, const struct want *wants, size_t count)
{
    ENSURE((status != CUDA_SUCCESS) == fails);
    printf("call %.*s %d", (int)strcspn(name, "("), name, (int)status);
    for (size_t i = 0; i < count; i++) {
        if (is_wanted(&wants[i], status))
            printf(" %s=%" PRId64, wants[i].role, (int64_t)wants[i].value);
    }
    putchar('\n');
}

void object_call(const char *name, const uint64_t *a, const struct want *wants, size_t count)
{
    any_function *function = (any_function *)(uintptr_t)dlsym(objects_driver, name);
    ENSURE(function);
    object_said(name, function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9]), wants, count);
}

void objects_pause(void)
{
    if (!getenv("OBJECTS_PAUSE"))
        return;
    puts("pauses");
    fflush(stdout);
    ENSURE(getchar() != EOF);
}

uint64_t n(int32_t number)
{
    return UINT64_C(0xdeadbeef) << 32 | (uint32_t)number;
}

uint64_t to(const void *object)
{
    return fails ? UINT64_C(0x6b6b000000000010) : (uintptr_t)object;
}

uint64_t out(uint64_t handle)
{
    static uint64_t words[8];
    static unsigned next;
    uint64_t *word = &words[next++ % 8];
    *word = handle;
    return to(word);
}

uint64_t location(uint32_t type, int32_t id)
{
    return (uint64_t)(uint32_t)id << 32 | type;
}

void held(const char *kind, uint64_t address, uint64_t bytes, uint64_t pool, bool freed)
{
    char size[24] = "unknown";
    if (bytes != SIZE_UNKNOWN)
        snprintf(size, sizeof size, "%" PRIu64, bytes);
    if (!fails)
        printf("allocation %s %" PRIu64 " %s %" PRIu64 " %s\n", kind, address, size, pool,
               freed ? "freed" : "held");
}

/* ---- calls on the driver's own streams ---- */

static bool captured;

#define REAL(call, ...)                                                                                      \
    do {                                                                                                     \
        OK(call);                                                                                            \
        SAID(#call, CUDA_SUCCESS, __VA_ARGS__, { captured ? ALWAYS : NEVER, "captured", 1 });                \
    } while (0)
#define P(pointer) ((uintptr_t)(pointer))

/* A row of `event_waits`. */
static void edge(CUstream waiting, CUevent event, CUstream recorded)
{
    printf("edge %" PRIuPTR " %" PRIuPTR " %" PRIuPTR " %d\n", P(waiting), P(event), P(recorded), captured);
}

static void callback(void *data)
{
    (void)data;
}

static void record(CUevent event, CUstream stream)
{
    REAL(cuEventRecord(event, stream), I(event, P(event)), I(stream, P(stream)));
}

static void wait_for(CUstream stream, CUevent event, CUstream recorded)
{
    REAL(cuStreamWaitEvent(stream, event, 0), I(stream, P(stream)), I(event, P(event)));
    edge(stream, event, recorded);
}

static void make_streams(void)
{
    CUcontext context;
    CUstream first, second;
    CUevent event, other, reused_event;
    CUgraph graph;
    CUdeviceptr address;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&other, CU_EVENT_DISABLE_TIMING));

    wait_for(second, other, NULL); /* not recorded yet */
    record(event, first);
    wait_for(second, event, first);
    record(other, first);
    record(event, second);
    wait_for(first, event, second);
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(NULL, first));
    wait_for(second, other, first);
    REAL(cuLaunchHostFunc(first, callback, NULL), I(stream, P(first)), I(host_function, P(callback)));
    REAL(cuEventSynchronize(event), I(event, P(event)));
    OK(cuStreamSynchronize(first));
    REAL(cuEventDestroy_v2(event), I(event, P(event)));
    OK(cuEventCreate(&reused_event, CU_EVENT_DISABLE_TIMING));
    ENSURE(reused_event == event);
    wait_for(first, reused_event, NULL);

    OK(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_GLOBAL));
    captured = true;
    record(event, first);
    wait_for(second, event, first);
    REAL(cuLaunchHostFunc(second, callback, NULL), I(stream, P(second)), I(host_function, P(callback)));
    REAL(cuMemAllocAsync(&address, 512, second), I(stream, P(second)), I(bytes, 512));
    REAL(cuMemFreeAsync(address, second), I(stream, P(second)));
    record(other, second);
    wait_for(first, other, second);
    OK(cuStreamEndCapture(first, &graph));
    captured = false;
    REAL(cuLaunchHostFunc(second, callback, NULL), I(stream, P(second)), I(host_function, P(callback)));
    OK(cuCtxSynchronize());
}

/* Uses arrays whose elements only the driver knows, and memory whose size only the driver knows. */
static void make_lookups(void)
{
    enum { FLOAT = 0x20, POINTER = 1, IN_ARRAY = 2, RANGE_BYTES = 5000 };
    struct operand {
        uint64_t type, pointer_or_array, words[3];
    };
    struct {
        struct operand source, destination;
        uint64_t width, height, depth, order;
    } copies[2] = { 0 };
    const CUDA_ARRAY_DESCRIPTOR descriptor = { .Width = 8, .Height = 4, .Format = FLOAT, .NumChannels = 2 };
    CUcontext context;
    CUarray array;
    CUdeviceptr address, exported;
    CUmemoryPool pool;
    CUstream stream;
    uint64_t export[8], imported = 0;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&address, 4096));
    REAL(cuArrayCreate_v2(&array, &descriptor), I(bytes, 8 * 4 * 8));
    copies[0].source = copies[1].source = (struct operand){ POINTER, address, { 0 } };
    copies[0].destination = (struct operand){ POINTER, address + 2048, { 0 } };
    copies[1].destination = (struct operand){ IN_ARRAY, P(array), { 0 } };
    for (int i = 0; i < 2; i++) {
        copies[i].width = 8;
        copies[i].height = 4;
        copies[i].depth = copies[i].order = 1;
    }
    CALL(cuMemcpy3DBatchAsync_v2, A(2, to(copies), 0, P(stream)), I(bytes, 8 * 4 + 8 * 4 * 8));
    CALL(cuMemcpy3DBatchAsync, A(1, to(&copies[1]), 0, 0, P(stream)), I(bytes, 8 * 4 * 8));
    OK(cuMemAllocAsync(&exported, RANGE_BYTES, stream));
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    CALL(cuMemPoolExportPointer, A(to(export), exported), I(address, exported));
    CALL(cuMemPoolImportPointer, A(to(&imported), P(pool), to(export)), UNKNOWN(bytes));
    OK(cuMemFree(imported));

    held("device", address, 4096, 0, false);
    held("array", P(array), 8 * 4 * 8, 0, false);
    held("pool", exported, RANGE_BYTES, 0, false);
    held("ipc", imported, SIZE_UNKNOWN, P(pool), true);
}

int main(int argc, char **argv)
{
    const char *status = getenv("SIMCUDA_VERIFY");
    fails = status && strtol(status, NULL, 10) != 0;
    objects_driver = dlopen("libcuda.so.1", RTLD_NOW);
    ENSURE(objects_driver);
    if (argc == 2 && strcmp(argv[1], "arguments") == 0) {
        make_arguments();
    } else if (argc == 2 && strcmp(argv[1], "memory") == 0) {
        make_memory();
    } else if (argc == 2 && strcmp(argv[1], "streams") == 0) {
        make_streams();
    } else if (argc == 2 && strcmp(argv[1], "lookups") == 0) {
        make_lookups();
    } else {
        fputs("Usage: objects arguments|memory|streams|lookups\n", stderr);
        return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
    }
    return 0;
}
