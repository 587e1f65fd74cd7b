/* objects_memory.c: allocates and frees memory at addresses that it chooses, with a driver whose functions do
 * nothing. */
#include "objects.h"

#include <dlfcn.h>

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
    /* Retain the memory a second time. Both holders then release it. */
    CALL(cuMemRetainAllocationHandle, A(out(MEMORY), ADDRESS), UNKNOWN(bytes));
    CALL(cuMemRelease, A(MEMORY), F(memory, MEMORY));
    CALL(cuMemImportFromShareableHandle, A(out(MEMORY + 2), 3, n(1)), UNKNOWN(bytes));
    CALL(cuMemRetainAllocationHandle, A(out(MEMORY + 2), ADDRESS), UNKNOWN(bytes));
    CALL(cuMemRelease, A(MEMORY + 2), F(memory, MEMORY + 2));
    CALL(cuMemRelease, A(MEMORY + 2), F(memory, MEMORY + 2));
    CALL(cuMemUnmap, A(ADDRESS, 2 * piece), F(address, ADDRESS));
    CALL(cuMemMap, A(ADDRESS, piece, 0, MEMORY, 0), I(bytes, piece));
    CALL(cuMemAddressFree, A(ADDRESS - piece, piece),
         F(address, ADDRESS - piece)); /* an address that has not been reserved */

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
        (CUresult(*)(uint64_t, struct bytes64, unsigned))(uintptr_t)dlsym(objects_driver,
                                                                          "cuIpcOpenMemHandle_v2");
    CUresult (*open_event)(uint64_t, struct bytes64) =
        (CUresult(*)(uint64_t, struct bytes64))(uintptr_t)dlsym(objects_driver, "cuIpcOpenEventHandle");
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
    /* The program queries the memory through an address in the middle of the memory. */
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
    const bool readable = fails; /* the descriptor can be read even if the call was rejected */
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

/* A reused address receives a new row, even if the intermediate free was not seen. */
static void reused(void)
{
    CALL(cuMemAlloc_v2, A(out(ADDRESS + 7), 100), I(bytes, 100));
    CALL(cuMemFree_v2, A(ADDRESS + 7), F(address, ADDRESS + 7));
    CALL(cuMemAlloc_v2, A(out(ADDRESS + 7), 200), I(bytes, 200));
    CALL(cuMemAlloc_v2, A(out(ADDRESS + 7), 300), I(bytes, 300));
    CALL(cuMemFree_v2, A(ADDRESS + 8), F(address, ADDRESS + 8)); /* in the middle of the block, so the call
                                                                  * frees nothing */
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

void make_memory(void)
{
    virtual_memory();
    shared_memory();
    arrays();
    reused();
}
