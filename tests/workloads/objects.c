/* objects.c: calls about every kind of object, with arguments that can be recognised. Prints for each call
 * what a trace must say of it: its name and status, role=handle in order, bytes=N; then the rows of
 * `allocations` and `event_waits`. "arguments" and "memory" are for a driver whose functions do nothing and
 * return SIMCUDA_VERIFY; "streams" makes real calls, some of them captured; "lookups" real ones of which the
 * driver alone knows how many bytes. */
#include "workload.h"

#include <dlfcn.h>
#include <elf.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* Handles and addresses: none fits 32 bits, but for those of the first versions. */
#define CONTEXT  UINT64_C(0x7f0100000010)
#define STREAM   UINT64_C(0x7f0200000020)
#define OTHER    UINT64_C(0x7f0200000120)
#define EVENT    UINT64_C(0x7f0300000030)
#define EVENT_2  UINT64_C(0x7f0300000130)
#define ADDRESS  UINT64_C(0x7f0400000040)
#define ADDRESS1 UINT64_C(0xf4000040) /* 32 bits */
#define MEMORY   UINT64_C(0x7f0500000050)
#define POOL     UINT64_C(0x7f0600000060)
#define MODULE   UINT64_C(0x7f0700000070)
#define LIBRARY  UINT64_C(0x7f0800000080)
#define FUNCTION UINT64_C(0x7f0900000090)
#define ARRAY    UINT64_C(0x7f0a000000a0)
#define ARRAY_2  UINT64_C(0x7f0a000001a0)
#define TEXTURE  UINT64_C(0x7f0b000000b0)
#define SURFACE  UINT64_C(0x7f0c000000c0)
#define RESOURCE UINT64_C(0x7f0d000000d0)
#define LINKER   UINT64_C(0x7f0e000000e0)
#define CALLBACK UINT64_C(0x7f0f000000f0)
#define OBJECT   UINT64_C(0x7f1000000100)
#define GROUP    UINT64_C(0x7f1100000110)
#define SIGNAL   UINT64_C(0x7f1200000120)
#define SIZE     UINT64_C(0x123456780)

#define SIZE_UNKNOWN UINT64_MAX

struct want {
    enum { ALWAYS, AFTER_SUCCESS, AFTER_FAILURE, NEVER } when;
    const char *role; /* or "bytes" */
    uint64_t value;
};

static bool fails; /* what the functions do in "arguments" */
static void *driver;

typedef CUresult any_function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                              uint64_t, uint64_t);

static bool is_wanted(const struct want *want, CUresult status)
{
    return want->when == ALWAYS || want->when == (status == CUDA_SUCCESS ? AFTER_SUCCESS : AFTER_FAILURE);
}

/* `name` may go on with arguments. */
static void print_wanted(const char *name, CUresult status, const struct want *wants, size_t count)
{
    ENSURE((status != CUDA_SUCCESS) == fails);
    printf("call %.*s %d", (int)strcspn(name, "("), name, (int)status);
    for (size_t i = 0; i < count; i++) {
        if (is_wanted(&wants[i], status))
            printf(" %s=%" PRId64, wants[i].role, (int64_t)wants[i].value);
    }
    putchar('\n');
}

static void call(const char *name, const uint64_t *a, const struct want *wants, size_t count)
{
    any_function *function = (any_function *)(uintptr_t)dlsym(driver, name);
    ENSURE(function);
    print_wanted(name, function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9]), wants, count);
}

/* Missing arguments are 0. What is wanted of a call: always, after success, after failure. */
/* clang-format off */
#define A(...)   ((const uint64_t[10]){ __VA_ARGS__ })
#define I(r, v)  { ALWAYS, #r, (v) }
#define O(r, v)  { AFTER_SUCCESS, #r, (v) }
#define F(r, v)  { AFTER_FAILURE, #r, (v) }
#define UNKNOWN(r) { NEVER, #r, 0 } /* what nobody says */
#define WANTS(...)                                                                                           \
    (const struct want[]){ __VA_ARGS__ }, sizeof((const struct want[]){ __VA_ARGS__ }) / sizeof(struct want)
#define CALL(name, arguments, ...)  call(#name, arguments, WANTS(__VA_ARGS__))
#define SAID(name, status, ...)     print_wanted(name, status, WANTS(__VA_ARGS__))
/* clang-format on */

/* An argument of 32 bits: what its register holds besides is nobody's. */
static uint64_t n(int32_t number)
{
    return UINT64_C(0xdeadbeef) << 32 | (uint32_t)number;
}

/* A pointer to something the driver reads or writes: nothing is there when it fails. */
static uint64_t to(const void *object)
{
    return fails ? UINT64_C(0x6b6b000000000010) : (uintptr_t)object;
}

/* The same to a handle. Each call has its own. */
static uint64_t out(uint64_t handle)
{
    static uint64_t words[8];
    static unsigned next;
    uint64_t *word = &words[next++ % 8];
    *word = handle;
    return to(word);
}

/* CUmemLocation by value. */
static uint64_t location(uint32_t type, int32_t id)
{
    return (uint64_t)(uint32_t)id << 32 | type;
}

/* What only looks at graphs; what changes them is for nodes.c. */
static void graphs(void)
{
    CALL(cuGraphGetNodes, A(RESOURCE, 0, 0), I(graph, RESOURCE));
    CALL(cuGraphKernelNodeGetParams_v2, A(OBJECT, 0), I(graph_node, OBJECT));
    CALL(cuGraphExecGetFlags, A(GROUP, 0), I(graph_exec, GROUP));
    CALL(cuGraphExecKernelNodeSetParams_v2, A(GROUP, OBJECT, 0), I(graph_exec, GROUP), I(graph_node, OBJECT));
    CALL(cuGraphExecUpdate_v2, A(GROUP, RESOURCE, 0), I(graph_exec, GROUP), I(graph, RESOURCE));
    CALL(cuGraphUpload, A(GROUP, STREAM), I(graph_exec, GROUP), I(stream, STREAM));
    CALL(cuGraphUpload_ptsz, A(GROUP, 0), I(graph_exec, GROUP), I(stream, 2));
}

static void contexts_and_devices(void)
{
    CALL(cuCtxAttach, A(out(CONTEXT), n(0)), O(context, CONTEXT));
    CALL(cuCtxCreate_v2, A(out(CONTEXT), n(0), n(3)), O(context, CONTEXT), I(device, 3));
    CALL(cuCtxCreate_v3, A(out(CONTEXT), 0, n(0), n(8), n(4)), O(context, CONTEXT), I(device, 4));
    CALL(cuCtxCreate_v4, A(out(CONTEXT), 0, n(8), n(5)), O(context, CONTEXT), I(device, 5));
    CALL(cuDevicePrimaryCtxRetain, A(out(CONTEXT), n(2)), O(context, CONTEXT), I(device, 2));
    CALL(cuCtxGetApiVersion, A(CONTEXT, out(0)), I(context, CONTEXT));
    CALL(cuCtxGetDevResource, A(CONTEXT, out(0), n(1)), I(context, CONTEXT), I(value, 1));
    CALL(cuCtxFromGreenCtx, A(out(CONTEXT), CONTEXT + 1), O(context, CONTEXT), I(context, CONTEXT + 1));
    CALL(cuGreenCtxCreate, A(out(CONTEXT), RESOURCE, n(1), n(1)), O(context, CONTEXT), I(resource, RESOURCE),
         I(device, 1));
    CALL(cuCtxSetLimit, A(n(2), SIZE), I(attribute, 2), I(value, SIZE));
    CALL(cuCtxGetLimit, A(out(0), n(3)), I(attribute, 3));
    CALL(cuCtxSetFlags, A(n(8)), I(value, 8));
    CALL(cuDevicePrimaryCtxReset_v2, A(n(1)), I(device, 1));
    CALL(cuDevicePrimaryCtxRelease_v2, A(n(2)), I(device, 2));
    CALL(cuDeviceGet, A(out(0), n(1)), I(device, 1));
    CALL(cuDeviceGetName, A(out(0), n(16), n(6)), I(device, 6));
    CALL(cuDeviceGetTexture1DLinearMaxWidth, A(out(0), n(1), n(4), n(7)), I(device, 7));
    CALL(cuDeviceGetByPCIBusId, A(out(0xdead00000003), to("0:0")), O(device, 3));
    CALL(cuDeviceCanAccessPeer, A(out(0), n(1), n(2)), I(device, 1), I(device, 2));
    CALL(cuDeviceGetP2PAtomicCapabilities, A(out(0), out(0), n(1), n(1), n(2)), I(device, 1), I(device, 2));
    CALL(cuDeviceGetDevResource, A(n(1), out(0), n(2)), I(device, 1), I(value, 2));
    CALL(cuDeviceGetGraphMemAttribute, A(n(1), n(2), out(0)), I(device, 1), I(attribute, 2));
    CALL(cuDeviceGetAttribute, A(out(0), n(75), n(1)), I(attribute, 75), I(device, 1));
    CALL(cuDeviceGetP2PAttribute, A(out(0), n(2), n(3), n(4)), I(attribute, 2), I(device, 3), I(device, 4));
    CALL(cuDeviceRegisterAsyncNotification, A(n(1), CALLBACK, 0, out(0)), I(device, 1),
         I(host_function, CALLBACK));
    CALL(cuCoredumpGetAttribute, A(n(4), out(0), out(0)), I(attribute, 4));
    CALL(cuMemGetAllocationGranularity, A(out(0), out(0), n(1)), I(attribute, 1));
}

static void streams_and_events(void)
{
    CALL(cuStreamCreate, A(out(STREAM), n(1)), O(stream, STREAM));
    CALL(cuStreamCreateWithPriority, A(out(STREAM), n(1), n(-5)), O(stream, STREAM),
         I(value, (uint64_t)INT64_C(-5)));
    CALL(cuGreenCtxStreamCreate, A(out(STREAM), CONTEXT, n(1), n(-2)), O(stream, STREAM), I(context, CONTEXT),
         I(value, (uint64_t)INT64_C(-2)));
    CALL(cuStreamCopyAttributes, A(STREAM, OTHER), I(stream, STREAM), I(stream, OTHER));
    CALL(cuStreamCopyAttributes_ptsz, A(STREAM, 0), I(stream, STREAM), I(stream, 2));
    CALL(cuStreamGetAttribute_ptsz, A(0, n(3), out(0)), I(stream, 2), I(attribute, 3));
    CALL(cuStreamGetCtx, A(0, out(CONTEXT)), I(stream, 0), O(context, CONTEXT));
    CALL(cuStreamGetCtx, A(STREAM, 0), I(stream, STREAM));
    CALL(cuStreamGetDevice_ptsz, A(0, out(1)), I(stream, 2), O(device, 1));
    CALL(cuStreamGetPriority, A(STREAM, out(0)), I(stream, STREAM));
    CALL(cuEventCreate, A(out(EVENT), n(0)), O(event, EVENT));
    CALL(cuEventQuery, A(EVENT), I(event, EVENT));
    CALL(cuEventDestroy_v2, A(EVENT), I(event, EVENT));
    CALL(cuStreamDestroy_v2, A(OTHER), I(stream, OTHER));
    CALL(cuEventRecord, A(EVENT, STREAM), I(event, EVENT), I(stream, STREAM));
    CALL(cuEventRecord_ptsz, A(EVENT, 0), I(event, EVENT), I(stream, 2));
    CALL(cuEventRecordWithFlags, A(EVENT, 0, n(1)), I(event, EVENT), I(stream, 0));
    CALL(cuStreamWaitEvent, A(STREAM, EVENT, n(0)), I(stream, STREAM), I(event, EVENT));
    CALL(cuStreamWaitEvent_ptsz, A(0, EVENT, n(0)), I(stream, 2), I(event, EVENT));
    CALL(cuEventElapsedTime, A(out(0), EVENT, EVENT_2), I(event, EVENT), I(event, EVENT_2));
    CALL(cuCtxRecordEvent, A(CONTEXT, EVENT), I(event, EVENT), I(context, CONTEXT));
    CALL(cuCtxWaitEvent, A(CONTEXT, EVENT), I(context, CONTEXT), I(event, EVENT));
    CALL(cuIpcGetEventHandle, A(out(0), EVENT), I(event, EVENT));
    CALL(cuLaunchHostFunc, A(STREAM, CALLBACK, 0), I(stream, STREAM), I(host_function, CALLBACK));
    CALL(cuLaunchHostFunc_ptsz, A(0, CALLBACK, 0), I(stream, 2), I(host_function, CALLBACK));
    CALL(cuStreamAddCallback, A(STREAM, CALLBACK, 0, n(0)), I(stream, STREAM), I(host_function, CALLBACK));
    CALL(cuLogsRegisterCallback, A(CALLBACK, 0, out(0)), I(host_function, CALLBACK));
    CALL(cuStreamWriteValue32_v2, A(STREAM, ADDRESS, n(1), n(0)), I(stream, STREAM), I(address, ADDRESS));
    CALL(cuStreamWaitValue64_ptsz, A(0, ADDRESS, SIZE, n(0)), I(stream, 2), I(address, ADDRESS));
    const struct {
        uint32_t operation;
        uint64_t address, rest[4];
    } write = { 2, ADDRESS, { 0 } }, barrier = { 6, 0, { 0 } };
    CALL(cuStreamBatchMemOp_v2, A(STREAM, n(1), to(&write), n(0)), I(stream, STREAM), O(address, ADDRESS),
         I(value, 1));
    CALL(cuStreamBatchMemOp, A(STREAM, n(1), to(&barrier), n(0)), I(stream, STREAM), I(value, 1));
    CALL(cuStreamBatchMemOp_ptsz, A(0, n(0), 0x10, n(0)), I(stream, 2), I(value, 0));
    CALL(cuStreamAttachMemAsync, A(STREAM, ADDRESS, SIZE, n(1)), I(stream, STREAM), I(address, ADDRESS),
         I(bytes, SIZE));
    const uint64_t signals[] = { SIGNAL, 0 };
    CALL(cuSignalExternalSemaphoresAsync, A(to(signals), out(0), n(2), STREAM), I(stream, STREAM),
         O(semaphore, SIGNAL));
    CALL(cuWaitExternalSemaphoresAsync_ptsz, A(to(signals), out(0), n(2), 0), I(stream, 2),
         O(semaphore, SIGNAL));
    CALL(cuImportExternalSemaphore, A(out(SIGNAL), out(0)), O(semaphore, SIGNAL));
    CALL(cuDestroyExternalSemaphore, A(SIGNAL), I(semaphore, SIGNAL));
}

static void memory(void)
{
    const uint64_t minus_1 = (uint64_t)INT64_C(-1);
    CALL(cuIpcGetMemHandle, A(out(0), ADDRESS), I(address, ADDRESS));
    CALL(cuMemGetAccess, A(out(0), out(0), ADDRESS), I(address, ADDRESS));
    CALL(cuTensorMapEncodeTiled, A(out(0), n(0), n(2), ADDRESS), I(address, ADDRESS));
    CALL(cuMemGetAddressRange_v2, A(out(ADDRESS), out(SIZE), ADDRESS + 5), I(address, ADDRESS + 5),
         O(address, ADDRESS), O(bytes, SIZE));
    CALL(cuMemGetAddressRange, A(out(0xdead0000f4000000), out(0xdead000000000100), n((int32_t)ADDRESS1)),
         I(address, ADDRESS1), O(address, 0xf4000000), O(bytes, 0x100));
    CALL(cuMemGetHandleForAddressRange, A(out(0), ADDRESS, SIZE, n(1), 0), I(address, ADDRESS),
         I(bytes, SIZE));
    CALL(cuMemHostGetDevicePointer_v2, A(out(ADDRESS), ADDRESS + 1, n(0)), O(address, ADDRESS),
         I(address, ADDRESS + 1));
    CALL(cuMemHostGetDevicePointer, A(out(ADDRESS), ADDRESS + 1, n(0)), O(address, (uint32_t)ADDRESS),
         I(address, ADDRESS + 1));
    CALL(cuPointerGetAttribute, A(out(0), n(2), ADDRESS), I(address, ADDRESS), I(attribute, 2));
    CALL(cuPointerGetAttributes, A(n(1), out(9), out(0), ADDRESS), I(address, ADDRESS), O(attribute, 9));
    CALL(cuMemAdvise, A(ADDRESS, SIZE, n(3), n(-1)), I(address, ADDRESS), I(attribute, 3), I(device, minus_1),
         I(bytes, SIZE));
    CALL(cuMemAdvise_v2, A(ADDRESS, SIZE, n(3), location(1, 2)), I(address, ADDRESS), I(attribute, 3),
         I(device, 2), I(bytes, SIZE));
    CALL(cuMemPrefetchAsync, A(ADDRESS, SIZE, n(1), STREAM), I(stream, STREAM), I(address, ADDRESS),
         I(device, 1), I(bytes, SIZE));
    CALL(cuMemPrefetchAsync_v2_ptsz, A(ADDRESS, SIZE, location(2, 7), n(0), 0), I(stream, 2),
         I(address, ADDRESS), I(device, minus_1), I(bytes, SIZE));
    const uint64_t addresses[] = { ADDRESS, ADDRESS + 64 }, sizes[] = { 100, 23 }, at[] = { location(1, 3) };
    CALL(cuMemPrefetchBatchAsync, A(to(addresses), to(sizes), 2, to(at), out(0), 1, 0, STREAM),
         I(stream, STREAM), O(address, ADDRESS), O(device, 3), O(bytes, 123));
    CALL(cuMemDiscardBatchAsync_ptsz, A(to(addresses), to(sizes), 2, 0, 0), I(stream, 2), O(address, ADDRESS),
         O(bytes, 123));
    CALL(cuMemDiscardBatchAsync, A(0x10, 0x10, 0, 0, STREAM), I(stream, STREAM));
    const uint64_t decompress[2][8] = { { 1, 100 }, { 1, 200 } };
    CALL(cuMemBatchDecompressAsync, A(to(decompress), 2, n(0), 0, STREAM), I(stream, STREAM), O(bytes, 300));
    CALL(cuMemRangeGetAttribute, A(out(0), 4, n(2), ADDRESS, SIZE), I(address, ADDRESS), I(attribute, 2),
         I(bytes, SIZE));
    CALL(cuMemRangeGetAttributes, A(out(0), out(0), out(3), 1, ADDRESS, SIZE), I(address, ADDRESS),
         O(attribute, 3), I(bytes, SIZE));
    CALL(cuMemSetAccess, A(ADDRESS, SIZE, to(at), 1), I(address, ADDRESS), O(device, 3), I(bytes, SIZE));
    CALL(cuDestroyExternalMemory, A(MEMORY), I(memory, MEMORY));
    CALL(cuMemExportToShareableHandle, A(out(0), MEMORY, n(1), 0), I(memory, MEMORY));
    const uint64_t external[] = { 1, 0, 0, SIZE };
    CALL(cuImportExternalMemory, A(out(MEMORY), to(external)), O(memory, MEMORY), O(bytes, SIZE));
    const uint64_t multicast[] = { 2, SIZE, 0, 0 };
    CALL(cuMulticastCreate, A(out(GROUP), to(multicast)), O(multicast, GROUP), O(bytes, SIZE));
    CALL(cuMulticastAddDevice, A(GROUP, n(1)), I(multicast, GROUP), I(device, 1));
    CALL(cuMulticastBindMem, A(GROUP, 0, MEMORY, 0, SIZE, 0), I(multicast, GROUP), I(memory, MEMORY),
         I(bytes, SIZE));
    CALL(cuMulticastBindAddr, A(GROUP, 0, ADDRESS, SIZE, 0), I(multicast, GROUP), I(address, ADDRESS),
         I(bytes, SIZE));
    CALL(cuMulticastUnbind, A(GROUP, n(1), 0, SIZE), I(multicast, GROUP), I(device, 1), I(bytes, SIZE));
}

static void pools(void)
{
    const uint64_t properties[] = { 1, location(1, 2), 0, 0 }, at[] = { location(3, 1) };
    const uint64_t threshold = SIZE, flag = 1;
    CALL(cuMemPoolCreate, A(out(POOL), to(properties)), O(pool, POOL), O(device, 2));
    CALL(cuMemPoolDestroy, A(POOL), I(pool, POOL));
    CALL(cuMemPoolExportToShareableHandle, A(out(0), POOL, n(1), 0), I(pool, POOL));
    CALL(cuMemPoolImportFromShareableHandle, A(out(POOL), out(0), n(1), 0), O(pool, POOL));
    CALL(cuDeviceGetMemPool, A(out(POOL), n(1)), O(pool, POOL), I(device, 1));
    CALL(cuDeviceSetMemPool, A(n(1), POOL), I(pool, POOL), I(device, 1));
    CALL(cuMemGetMemPool, A(out(POOL), to(at), n(1)), O(pool, POOL), O(device, (uint64_t)INT64_C(-1)));
    CALL(cuMemSetMemPool, A(to(at), n(1), POOL), I(pool, POOL), O(device, (uint64_t)INT64_C(-1)));
    CALL(cuMemPoolGetAccess, A(out(0), POOL, to(at)), I(pool, POOL), O(device, (uint64_t)INT64_C(-1)));
    CALL(cuMemPoolSetAttribute, A(POOL, n(4), to(&threshold)), I(pool, POOL), I(attribute, 4),
         O(value, SIZE));
    CALL(cuMemPoolGetAttribute, A(POOL, n(2), to(&flag)), I(pool, POOL), I(attribute, 2), O(value, 1));
    CALL(cuMemPoolTrimTo, A(POOL, SIZE), I(pool, POOL), I(value, SIZE));
}

static void code(const char *path)
{
    Elf64_Ehdr elf = { .e_ident = ELFMAG,
                       .e_shoff = 4000,
                       .e_shentsize = 64,
                       .e_shnum = 3,
                       .e_phoff = 5000,
                       .e_phentsize = 56,
                       .e_phnum = 2 };
    elf.e_ident[EI_CLASS] = ELFCLASS64;
    const struct {
        uint32_t magic;
        uint16_t version, head_bytes;
        uint64_t payload_bytes;
    } fatbin = { 0xba55ed50, 1, 16, 6152 };
    const struct {
        uint32_t magic, version;
        const void *image, *rest;
    } wrapper = { 0x466243b1, 1, &fatbin, NULL };
    CALL(cuModuleLoad, A(out(MODULE), (uintptr_t)path), O(module, MODULE), O(bytes, 4321));
    CALL(cuModuleLoadData, A(out(MODULE), to(".version 8.0\n")), O(module, MODULE), O(bytes, 13));
    CALL(cuModuleLoadDataEx, A(out(MODULE), to(&elf), n(0)), O(module, MODULE), O(bytes, 5112));
    CALL(cuModuleLoadFatBinary, A(out(MODULE), to(&fatbin)), O(module, MODULE), O(bytes, 6168));
    CALL(cuModuleLoadData, A(out(MODULE), to("\1\2\3\4")), O(module, MODULE));
    CALL(cuLibraryLoadData, A(out(LIBRARY), to(&wrapper)), O(library, LIBRARY), O(bytes, 6168));
    CALL(cuLibraryLoadData, A(out(LIBRARY), to("P")), O(library, LIBRARY), O(bytes, 1));
    CALL(cuLibraryLoadFromFile, A(out(LIBRARY), (uintptr_t)path), O(library, LIBRARY), O(bytes, 4321));
    CALL(cuLibraryLoadFromFile, A(out(LIBRARY), to("/nowhere")), O(library, LIBRARY));
    CALL(cuModuleUnload, A(MODULE), I(module, MODULE));
    CALL(cuLibraryUnload, A(LIBRARY), I(library, LIBRARY));
    CALL(cuModuleGetFunctionCount, A(out(0), MODULE), I(module, MODULE));
    CALL(cuLibraryGetKernelCount, A(out(0), LIBRARY), I(library, LIBRARY));
    CALL(cuFuncGetModule, A(out(MODULE), FUNCTION), O(module, MODULE), I(function, FUNCTION));
    CALL(cuLibraryGetModule, A(out(MODULE), LIBRARY), O(module, MODULE), I(library, LIBRARY));
    CALL(cuKernelGetLibrary, A(out(LIBRARY), FUNCTION), O(library, LIBRARY), I(function, FUNCTION));
    CALL(cuLibraryGetUnifiedFunction, A(out(FUNCTION), LIBRARY, to("f")), O(function, FUNCTION),
         I(library, LIBRARY));
    CALL(cuModuleGetGlobal_v2, A(out(ADDRESS), out(SIZE), MODULE, to("g")), O(address, ADDRESS),
         I(module, MODULE), O(bytes, SIZE));
    CALL(cuModuleGetGlobal_v2, A(0, 0, MODULE, to("g")), I(module, MODULE));
    CALL(cuModuleGetGlobal, A(out(ADDRESS), out(SIZE), MODULE, to("g")), O(address, (uint32_t)ADDRESS),
         I(module, MODULE), O(bytes, (uint32_t)SIZE));
    CALL(cuLibraryGetGlobal, A(out(ADDRESS), out(SIZE), LIBRARY, to("g")), O(address, ADDRESS),
         I(library, LIBRARY), O(bytes, SIZE));
    CALL(cuModuleGetTexRef, A(out(TEXTURE), MODULE, to("t")), O(texture, TEXTURE), I(module, MODULE));
    CALL(cuModuleGetSurfRef, A(out(SURFACE), MODULE, to("s")), O(surface, SURFACE), I(module, MODULE));
    CALL(cuLinkCreate_v2, A(n(0), 0, 0, out(LINKER)), O(linker, LINKER));
    CALL(cuLinkAddData_v2, A(LINKER, n(1), out(0), SIZE, to("name"), n(0)), I(linker, LINKER),
         I(bytes, SIZE));
    CALL(cuLinkAddFile_v2, A(LINKER, n(1), (uintptr_t)path, n(0)), I(linker, LINKER), O(bytes, 4321));
    CALL(cuLinkComplete, A(LINKER, out(0), out(SIZE)), I(linker, LINKER), O(bytes, SIZE));
    CALL(cuLinkDestroy, A(LINKER), I(linker, LINKER));
}

static void functions(void)
{
    const uint64_t launches[7] = { FUNCTION };
    CALL(cuFuncLoad, A(FUNCTION), I(function, FUNCTION));
    CALL(cuFuncIsLoaded, A(out(0), FUNCTION), I(function, FUNCTION));
    CALL(cuFuncGetAttribute, A(out(0), n(4), FUNCTION), I(function, FUNCTION), I(attribute, 4));
    CALL(cuFuncSetAttribute, A(FUNCTION, n(8), n(98304)), I(function, FUNCTION), I(attribute, 8),
         I(value, 98304));
    CALL(cuKernelGetAttribute, A(out(0), n(4), FUNCTION, n(1)), I(function, FUNCTION), I(attribute, 4),
         I(device, 1));
    CALL(cuKernelSetAttribute, A(n(8), n(98304), FUNCTION, n(1)), I(function, FUNCTION), I(attribute, 8),
         I(value, 98304));
    CALL(cuKernelGetParamInfo, A(FUNCTION, 3, out(0), out(0)), I(function, FUNCTION), I(value, 3));
    CALL(cuKernelSetCacheConfig, A(FUNCTION, n(2), n(1)), I(function, FUNCTION), I(value, 2), I(device, 1));
    CALL(cuFuncSetCacheConfig, A(FUNCTION, n(2)), I(function, FUNCTION), I(value, 2));
    CALL(cuFuncSetBlockShape, A(FUNCTION, n(16), n(8), n(1)), I(function, FUNCTION), I(value, 16),
         I(value, 8));
    CALL(cuParamSetv, A(FUNCTION, n(0), out(0), n(24)), I(function, FUNCTION), I(bytes, 24));
    CALL(cuParamSetTexRef, A(FUNCTION, n(-1), TEXTURE), I(function, FUNCTION), I(texture, TEXTURE));
    CALL(cuLaunchCooperativeKernelMultiDevice, A(to(launches), n(1), n(0)), O(function, FUNCTION),
         I(value, 1));
    CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, A(out(0), FUNCTION, n(256), 1024),
         I(function, FUNCTION), I(value, 256), I(value, 1024));
    CALL(cuOccupancyAvailableDynamicSMemPerBlock, A(out(0), FUNCTION, n(2), n(128)), I(function, FUNCTION),
         I(value, 2), I(value, 128));
    CALL(cuOccupancyMaxPotentialBlockSizeWithFlags,
         A(out(0), out(0xdead00000200), FUNCTION, CALLBACK, 1024, n(0), n(0)), I(function, FUNCTION),
         O(value, 512), I(value, 1024));
    CALL(cuOccupancyMaxActiveClusters, A(out(0), FUNCTION, out(0)), I(function, FUNCTION));
}

static void images(void)
{
    const uint64_t of_array[20] = { 0, ARRAY }, of_memory[20] = { 2, ADDRESS }, map[12] = { 0, ARRAY };
    CALL(cuArray3DGetDescriptor_v2, A(out(0), ARRAY), I(array, ARRAY));
    CALL(cuArrayGetMemoryRequirements, A(out(0), ARRAY, n(1)), I(array, ARRAY), I(device, 1));
    CALL(cuMipmappedArrayGetLevel, A(out(ARRAY_2), ARRAY, n(3)), O(array, ARRAY_2), I(array, ARRAY),
         I(value, 3));
    CALL(cuExternalMemoryGetMappedMipmappedArray, A(out(ARRAY), MEMORY, out(0)), O(array, ARRAY),
         I(memory, MEMORY));
    CALL(cuGraphicsSubResourceGetMappedArray, A(out(ARRAY), RESOURCE, n(0), n(0)), O(array, ARRAY),
         I(resource, RESOURCE));
    CALL(cuMemMapArrayAsync_ptsz, A(to(map), n(1), 0), I(stream, 2), O(array, ARRAY));
    CALL(cuTexObjectCreate, A(out(TEXTURE), to(of_memory), out(0), 0), O(texture, TEXTURE),
         O(address, ADDRESS));
    CALL(cuSurfObjectCreate, A(out(SURFACE), to(of_array)), O(surface, SURFACE), O(array, ARRAY));
    CALL(cuTexObjectDestroy, A(TEXTURE), I(texture, TEXTURE));
    CALL(cuSurfObjectDestroy, A(SURFACE), I(surface, SURFACE));
    CALL(cuTexObjectGetTextureDesc, A(out(0), TEXTURE), I(texture, TEXTURE));
    CALL(cuSurfObjectGetResourceDesc, A(out(0), SURFACE), I(surface, SURFACE));
    CALL(cuTexRefCreate, A(out(TEXTURE)), O(texture, TEXTURE));
    CALL(cuTexRefGetFormat, A(out(0), out(0), TEXTURE), I(texture, TEXTURE));
    CALL(cuTexRefSetArray, A(TEXTURE, ARRAY, n(1)), I(texture, TEXTURE), I(array, ARRAY));
    CALL(cuTexRefGetArray, A(out(ARRAY), TEXTURE), O(array, ARRAY), I(texture, TEXTURE));
    CALL(cuSurfRefSetArray, A(SURFACE, ARRAY, n(0)), I(surface, SURFACE), I(array, ARRAY));
    CALL(cuSurfRefGetArray, A(out(ARRAY), SURFACE), O(array, ARRAY), I(surface, SURFACE));
    CALL(cuTexRefSetAddress_v2, A(out(0), TEXTURE, ADDRESS, SIZE), I(texture, TEXTURE), I(address, ADDRESS),
         I(bytes, SIZE));
    CALL(cuTexRefSetAddress, A(out(0), TEXTURE, n((int32_t)ADDRESS1), n(256)), I(texture, TEXTURE),
         I(address, ADDRESS1), I(bytes, 256));
    CALL(cuTexRefGetAddress_v2, A(out(ADDRESS), TEXTURE), O(address, ADDRESS), I(texture, TEXTURE));
    CALL(cuTexRefGetAddress, A(out(ADDRESS), TEXTURE), O(address, (uint32_t)ADDRESS), I(texture, TEXTURE));
    CALL(cuTexRefSetAddress2D_v3, A(TEXTURE, out(0), ADDRESS, 512), I(texture, TEXTURE), I(address, ADDRESS));
    CALL(cuTexRefSetAddress2D, A(TEXTURE, out(0), n((int32_t)ADDRESS1), n(512)), I(texture, TEXTURE),
         I(address, ADDRESS1));
}

static void interfaces(void)
{
    const uint64_t resources[] = { RESOURCE };
    CALL(cuGraphicsMapResources, A(n(1), to(resources), STREAM), I(stream, STREAM), O(resource, RESOURCE));
    CALL(cuGraphicsUnmapResources_ptsz, A(n(0), 0x10, 0), I(stream, 2));
    CALL(cuGraphicsResourceGetMappedPointer_v2, A(out(ADDRESS), out(SIZE), RESOURCE), O(address, ADDRESS),
         I(resource, RESOURCE), O(bytes, SIZE));
    CALL(cuGraphicsResourceGetMappedPointer, A(out(ADDRESS), out(SIZE), RESOURCE),
         O(address, (uint32_t)ADDRESS), I(resource, RESOURCE), O(bytes, (uint32_t)SIZE));
    CALL(cuGraphicsResourceGetMappedEglFrame, A(out(0), RESOURCE, n(0), n(0)), I(resource, RESOURCE));
    CALL(cuGraphicsResourceSetMapFlags_v2, A(RESOURCE, n(1)), I(resource, RESOURCE), I(value, 1));
    CALL(cuGraphicsUnregisterResource, A(RESOURCE), I(resource, RESOURCE));
    CALL(cuGraphicsGLRegisterBuffer, A(out(RESOURCE), n(7), n(0)), O(resource, RESOURCE));
    CALL(cuGLRegisterBufferObject, A(n(7)), I(resource, 7));
    CALL(cuGLUnmapBufferObjectAsync, A(n(7), STREAM), I(stream, STREAM), I(resource, 7));
    CALL(cuGLMapBufferObject_v2, A(out(ADDRESS), out(SIZE), n(7)), O(address, ADDRESS), I(resource, 7),
         O(bytes, SIZE));
    CALL(cuGLMapBufferObject, A(out(ADDRESS), out(SIZE), n(7)), O(address, (uint32_t)ADDRESS), I(resource, 7),
         O(bytes, (uint32_t)SIZE));
    CALL(cuGLMapBufferObjectAsync_v2_ptsz, A(out(ADDRESS), out(SIZE), n(7), 0), I(stream, 2),
         O(address, ADDRESS), I(resource, 7), O(bytes, SIZE));
    CALL(cuGLMapBufferObjectAsync, A(out(ADDRESS), out(SIZE), n(7), STREAM), I(stream, STREAM),
         O(address, (uint32_t)ADDRESS), I(resource, 7), O(bytes, (uint32_t)SIZE));
    CALL(cuEGLStreamConsumerAcquireFrame, A(out(0), out(RESOURCE), out(STREAM), n(0)), O(resource, RESOURCE),
         O(stream, STREAM));
    CALL(cuEGLStreamConsumerReleaseFrame, A(out(0), RESOURCE, out(STREAM)), I(resource, RESOURCE),
         O(stream, STREAM));
    CALL(cuEGLStreamProducerReturnFrame, A(out(RESOURCE), out(0), out(STREAM)), O(resource, RESOURCE),
         O(stream, STREAM));
    CALL(cuUserObjectCreate, A(out(OBJECT), ADDRESS, CALLBACK, n(1), n(1)), O(user_object, OBJECT),
         I(address, ADDRESS), I(host_function, CALLBACK));
    CALL(cuUserObjectRelease, A(OBJECT, n(2)), I(user_object, OBJECT), I(value, 2));
}

static void make_arguments(void)
{
    char path[] = "/tmp/cudatrace-objects-XXXXXX";
    const int fd = mkstemp(path);
    ENSURE(fd >= 0 && ftruncate(fd, 4321) == 0);
    close(fd);
    contexts_and_devices();
    graphs();
    streams_and_events();
    memory();
    pools();
    code(path);
    functions();
    images();
    interfaces();
    unlink(path);
}

/* ---- memory that is got and given back, at addresses of our choice ---- */

/* A row of `allocations`, in the order in which they were got. */
static void held(const char *kind, uint64_t address, uint64_t bytes, uint64_t pool, bool freed)
{
    char size[24] = "unknown";
    if (bytes != SIZE_UNKNOWN)
        snprintf(size, sizeof size, "%" PRIu64, bytes);
    if (!fails)
        printf("allocation %s %" PRIu64 " %s %" PRIu64 " %s\n", kind, address, size, pool,
               freed ? "freed" : "held");
}

static void virtual_memory(void)
{
    const uint64_t piece = UINT64_C(0x200000), second = ADDRESS + piece, third = second + piece;
    CALL(cuMemCreate, A(out(MEMORY), piece, out(0), 0), I(bytes, piece));
    CALL(cuMemRelease, A(MEMORY), F(memory, MEMORY));
    CALL(cuMemCreate, A(out(MEMORY), 2 * piece, out(0), 0), I(bytes, 2 * piece));
    CALL(cuMemAddressReserve, A(out(ADDRESS), 3 * piece, 0, 0, 0), I(bytes, 3 * piece));
    CALL(cuMemMap, A(ADDRESS, piece, 0, MEMORY, 0), I(bytes, piece));
    CALL(cuMemMap, A(second, piece, piece, MEMORY, 0), I(bytes, piece));
    CALL(cuMemMap, A(third, piece, 0, MEMORY + 1, 0), I(bytes, piece));
    /* A second holder, who gives it back; the first one does, too. */
    CALL(cuMemRetainAllocationHandle, A(out(MEMORY), ADDRESS), UNKNOWN(bytes));
    CALL(cuMemRelease, A(MEMORY), F(memory, MEMORY));
    CALL(cuMemImportFromShareableHandle, A(out(MEMORY + 2), 3, n(1)), UNKNOWN(bytes));
    CALL(cuMemRetainAllocationHandle, A(out(MEMORY + 2), ADDRESS), UNKNOWN(bytes));
    CALL(cuMemRelease, A(MEMORY + 2), F(memory, MEMORY + 2));
    CALL(cuMemRelease, A(MEMORY + 2), F(memory, MEMORY + 2));
    CALL(cuMemUnmap, A(ADDRESS, 2 * piece), F(address, ADDRESS));
    CALL(cuMemMap, A(ADDRESS, piece, 0, MEMORY, 0), I(bytes, piece));
    CALL(cuMemAddressFree, A(ADDRESS - piece, piece), F(address, ADDRESS - piece)); /* of nothing known */

    held("physical", MEMORY, piece, 0, true);
    held("physical", MEMORY, 2 * piece, 0, false);
    held("reserved", ADDRESS, 3 * piece, 0, false);
    held("mapped", ADDRESS, piece, MEMORY, true);
    held("mapped", second, piece, MEMORY, true);
    held("mapped", third, piece, MEMORY + 1, false);
    held("physical", MEMORY + 2, SIZE_UNKNOWN, 0, true);
    held("mapped", ADDRESS, piece, MEMORY, false);
}

struct bytes64 {
    uint64_t words[8];
};

static void shared_memory(void)
{
    CUresult (*open_memory)(uint64_t, struct bytes64, unsigned) =
        (CUresult(*)(uint64_t, struct bytes64, unsigned))(uintptr_t)dlsym(driver, "cuIpcOpenMemHandle_v2");
    CUresult (*open_event)(uint64_t, struct bytes64) =
        (CUresult(*)(uint64_t, struct bytes64))(uintptr_t)dlsym(driver, "cuIpcOpenEventHandle");
    const struct bytes64 handle = { { 1, 2, 3, 4, 5, 6, 7, 8 } };
    const uint64_t buffer[] = { 4096, SIZE }; /* CUDA_EXTERNAL_MEMORY_BUFFER_DESC: offset, size */
    const uint64_t opened = ADDRESS + SIZE, mapped = ADDRESS + 2 * SIZE, imported = ADDRESS + 3 * SIZE;
    ENSURE(open_memory && open_event);
    for (int i = 0; i < 3; i++)
        SAID("cuIpcOpenMemHandle_v2", open_memory(out(opened), handle, 1), UNKNOWN(bytes));
    CALL(cuIpcCloseMemHandle, A(opened), F(address, opened));
    CALL(cuIpcCloseMemHandle, A(opened), F(address, opened));
    CALL(cuIpcCloseMemHandle, A(opened), F(address, opened));
    SAID("cuIpcOpenMemHandle_v2", open_memory(out(opened), handle, 1), UNKNOWN(bytes));
    /* The program asks, by an address in the middle. */
    CALL(cuMemGetAddressRange_v2, A(out(opened), out(SIZE), opened + 5), I(address, opened + 5),
         O(address, opened), O(bytes, SIZE));
    SAID("cuIpcOpenEventHandle", open_event(out(EVENT), handle), O(event, EVENT));
    CALL(cuExternalMemoryGetMappedBuffer, A(out(mapped), MEMORY, to(buffer)), O(bytes, SIZE),
         { AFTER_FAILURE, "bytes", 0 });
    CALL(cuMemFree_v2, A(mapped), F(address, mapped));
    CALL(cuMemPoolImportPointer, A(out(imported), POOL, out(0)), UNKNOWN(bytes));
    CALL(cuMemFreeAsync, A(imported, STREAM), I(stream, STREAM), F(address, imported));

    held("ipc", opened, SIZE_UNKNOWN, 0, true);
    held("ipc", opened, SIZE, 0, false);
    held("external", mapped, SIZE, MEMORY, true);
    held("ipc", imported, SIZE_UNKNOWN, POOL, true);
}

static void arrays(void)
{
    enum { FLOAT = 0x20, UINT8 = 1, BC1 = 0x91, LAYERED = 1 };
    const struct {
        uint64_t width, height;
        uint32_t format, channels;
    } flat = { 64, 32, FLOAT, 4 }, line = { 100, 0, UINT8, 2 };
    const struct {
        uint64_t width, height, depth;
        uint32_t format, channels, flags;
    } block = { 8, 4, 2, FLOAT, 1, 0 }, packed = { 10, 9, 0, BC1, 4, 0 },
      layers = { 8, 8, 3, UINT8, 1, LAYERED };
    const uint32_t old_flat[] = { 16, 16, UINT8, 4 }, old_block[] = { 16, 16, 2, UINT8, 4, 0 };
    const bool readable = fails; /* the descriptor is, even of a call that was refused */
    fails = false;
    const uint64_t at_flat = to(&flat), at_line = to(&line), at_block = to(&block), at_packed = to(&packed),
                   at_layers = to(&layers), at_old_flat = to(old_flat), at_old_block = to(old_block);
    fails = readable;
    CALL(cuArrayCreate_v2, A(out(ARRAY), at_flat), I(bytes, 64 * 32 * 16));
    CALL(cuArrayDestroy, A(ARRAY), F(array, ARRAY));
    CALL(cuArrayCreate_v2, A(out(ARRAY), at_line), I(bytes, 200));
    CALL(cuArrayCreate, A(out(ARRAY + 1), at_old_flat), I(bytes, 16 * 16 * 4));
    CALL(cuArray3DCreate_v2, A(out(ARRAY + 2), at_block), I(bytes, 8 * 4 * 2 * 4));
    CALL(cuArray3DCreate_v2, A(out(ARRAY + 3), at_packed), I(bytes, 3 * 3 * 8));
    CALL(cuArray3DCreate, A(out(ARRAY + 4), at_old_block), I(bytes, 16 * 16 * 2 * 4));
    CALL(cuMipmappedArrayCreate, A(out(ARRAY + 5), at_layers, n(3)), I(bytes, (64 + 16 + 4) * 3));
    CALL(cuMipmappedArrayDestroy, A(ARRAY + 5), F(array, ARRAY + 5));

    held("array", ARRAY, 64 * 32 * 16, 0, true);
    held("array", ARRAY, 200, 0, false);
    held("array", ARRAY + 1, 16 * 16 * 4, 0, false);
    held("array", ARRAY + 2, 8 * 4 * 2 * 4, 0, false);
    held("array", ARRAY + 3, 3 * 3 * 8, 0, false);
    held("array", ARRAY + 4, 16 * 16 * 2 * 4, 0, false);
    held("array", ARRAY + 5, (64 + 16 + 4) * 3, 0, true);
}

/* An address that is got again is another row, also when the free in between was not seen. */
static void reused(void)
{
    CALL(cuMemAlloc_v2, A(out(ADDRESS + 7), 100), I(bytes, 100));
    CALL(cuMemFree_v2, A(ADDRESS + 7), F(address, ADDRESS + 7));
    CALL(cuMemAlloc_v2, A(out(ADDRESS + 7), 200), I(bytes, 200));
    CALL(cuMemAlloc_v2, A(out(ADDRESS + 7), 300), I(bytes, 300));
    CALL(cuMemFree_v2, A(ADDRESS + 8), F(address, ADDRESS + 8)); /* inside, and so none */
    CALL(cuMemAlloc, A(out(0xdeadbeef00000000 | ADDRESS1), n(64)), I(bytes, 64));
    CALL(cuMemFree, A(n((int32_t)ADDRESS1)), F(address, ADDRESS1));
    CALL(cuMemAllocFromPoolAsync_ptsz, A(out(ADDRESS + 9), 400, POOL, 0), I(stream, 2), I(bytes, 400));
    CALL(cuMemFreeAsync_ptsz, A(ADDRESS + 9, 0), I(stream, 2), F(address, ADDRESS + 9));
    CALL(cuMemAllocAsync, A(out(ADDRESS + 9), 500, STREAM), I(stream, STREAM), I(bytes, 500));

    held("device", ADDRESS + 7, 100, 0, true);
    held("device", ADDRESS + 7, 200, 0, true);
    held("device", ADDRESS + 7, 300, 0, false);
    held("device", ADDRESS1, 64, 0, true);
    held("pool", ADDRESS + 9, 400, POOL, true);
    held("pool", ADDRESS + 9, 500, 0, false);
}

static void make_memory(void)
{
    virtual_memory();
    shared_memory();
    arrays();
    reused();
}

/* ---- on the driver's own streams ---- */

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

/* Arrays whose elements only the driver knows, and memory whose size only it knows. */
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
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    ENSURE(driver);
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
