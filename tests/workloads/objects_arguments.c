/* objects_arguments.c: makes calls on every kind of object, with a driver whose functions do nothing. */
#include "objects.h"

#include <elf.h>
#include <unistd.h>

/* Makes graph calls that leave the nodes unchanged, apart from their parameters. nodes.c makes the other
 * graph calls. */
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
    CALL(cuCtxSetFlags, A(n(8)), I(flags, 8));
    CALL(cuCtxSetCacheConfig, A(n(1)), I(value, 1));
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
    objects_pause();
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

void make_arguments(void)
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
    objects_pause();
    unlink(path);
}
