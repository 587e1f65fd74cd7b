/* sim_memory.c: the address ranges that the driver knows, sorted by address. A range is either device memory,
 * which is ordinary process memory, or page-locked memory. */
#include "simcuda.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    ALIGNMENT = 512,           /* alignment of device memory, as in the real driver */
    MAPPED_FROM = 1024 * 1024, /* larger blocks come from mmap(), so that only the pages that are touched use
                                * memory */
};

static struct region **regions;
static size_t region_count, region_room;

/* Returns the number of regions that begin at or below `address`. */
static size_t rank(uintptr_t address)
{
    size_t low = 0, high = region_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (regions[middle]->base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct region *region_at(uintptr_t address)
{
    const size_t after = rank(address);
    if (after == 0)
        return NULL;
    struct region *region = regions[after - 1];
    return address - region->base < region->size ? region : NULL;
}

struct region *region_holding(uintptr_t address, size_t size)
{
    struct region *region = region_at(address);
    return region && size <= region->size - (address - region->base) ? region : NULL;
}

struct region *region_based_at(uintptr_t address)
{
    struct region *region = region_at(address);
    return region && region->base == address ? region : NULL;
}

static uint64_t charge_of(size_t size)
{
    return ((uint64_t)size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static CUresult keep(struct region **region, const struct region *as)
{
    if (region_count == region_room) {
        const size_t room = region_room ? region_room * 2 : 64;
        struct region **grown = realloc(regions, room * sizeof *grown);
        if (!grown)
            return CUDA_ERROR_OUT_OF_MEMORY;
        regions = grown;
        region_room = room;
    }
    struct region *made = malloc(sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *made = *as;
    const size_t at = rank(made->base);
    memmove(regions + at + 1, regions + at, (region_count - at) * sizeof *regions);
    regions[at] = made;
    region_count++;
    if (made->kind == REGION_DEVICE)
        sim_device_used += charge_of(made->size);
    *region = made;
    return CUDA_SUCCESS;
}

/* The memory that was freed last, if SIMCUDA_REUSE=1. */
static struct {
    void *memory;
    size_t size;
    bool mapped;
} spare;

static void give_back(const struct region *region)
{
    if (sim_settings.reuses && !spare.memory) {
        spare.memory = (void *)region->base;
        spare.size = region->size;
        spare.mapped = region->mapped;
        return;
    }
    if (region->mapped)
        munmap((void *)region->base, region->size);
    else
        free((void *)region->base);
}

CUresult region_new(struct region **region, CUcontext context, enum region_kind kind, size_t size)
{
    struct region made = { .size = size, .kind = kind, .context = context };
    if (size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (kind == REGION_DEVICE &&
        (size > SIM_MEMORY_BYTES || charge_of(size) > SIM_MEMORY_BYTES - sim_device_used))
        return CUDA_ERROR_OUT_OF_MEMORY;
    void *memory = NULL;
    if (spare.memory && spare.size == size) {
        memory = spare.memory;
        made.mapped = spare.mapped;
        spare.memory = NULL;
    } else if (size >= MAPPED_FROM) {
        made.mapped = true;
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            return CUDA_ERROR_OUT_OF_MEMORY;
    } else if (posix_memalign(&memory, ALIGNMENT, size) != 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made.base = (uintptr_t)memory;
    const CUresult result = keep(region, &made);
    if (result != CUDA_SUCCESS)
        give_back(&made);
    return result;
}

/* If graph nodes still refer to the region, its memory and its address are released now, but the struct is
 * freed together with the last of these nodes. */
void region_free(struct region *region)
{
    const size_t at = rank(region->base) - 1;
    region_count--;
    memmove(regions + at, regions + at + 1, (region_count - at) * sizeof *regions);
    if (region->kind == REGION_DEVICE)
        sim_device_used -= charge_of(region->size);
    give_back(region);
    if (region->nodes > 0)
        region->gone = true;
    else
        free(region);
}

void region_hold(struct region *region)
{
    region->nodes++;
}

void region_drop(struct region *region)
{
    if (--region->nodes > 0)
        return;
    if (region->gone)
        free(region);
    else
        region_free(region);
}

void memory_end(CUcontext context)
{
    for (size_t i = region_count; i-- > 0;)
        if (regions[i]->context == context)
            region_free(regions[i]);
}
