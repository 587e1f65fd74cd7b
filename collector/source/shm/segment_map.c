#include "segment_map.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

static uint32_t blocks_of(const struct ct_segment *facts)
{
    return (facts->lane_slots + CT_BLOCK_LANES - 1) / CT_BLOCK_LANES;
}

static int map_block(struct ct_segment_block *block, const struct ct_segment *facts, int fd, uint32_t number)
{
    const uint32_t first = number * CT_BLOCK_LANES, rest = facts->lane_slots - first;
    const size_t bytes = (rest < CT_BLOCK_LANES ? rest : CT_BLOCK_LANES) * facts->lane_stride;
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
                     (off_t)ct_segment_lane_offset(facts, first));
    if (map == MAP_FAILED)
        return -errno;
    struct ct_guard *guard = ct_guard_add(map, bytes);
    if (!guard) {
        munmap(map, bytes);
        return -ENOMEM;
    }
    *block = (struct ct_segment_block){ map, bytes, guard };
    return 0;
}

int ct_segment_map_lane(struct ct_segment_map *map, const struct ct_segment *facts, int fd, uint32_t index,
                        struct ct_lane **lane)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return -errno;
    if ((uint64_t)status.st_size < ct_segment_lane_offset(facts, index) + CT_LANE_HEADER_BYTES)
        return -EPROTO;
    if (!map->blocks)
        map->blocks = calloc(blocks_of(facts), sizeof(*map->blocks));
    if (!map->blocks)
        return -ENOMEM;
    struct ct_segment_block *block = &map->blocks[index / CT_BLOCK_LANES];
    const int error = block->map ? 0 : map_block(block, facts, fd, index / CT_BLOCK_LANES);
    if (error)
        return error;
    *lane = (struct ct_lane *)(void *)(block->map + index % CT_BLOCK_LANES * facts->lane_stride);
    return 0;
}

bool ct_segment_map_is_poisoned(const struct ct_segment_map *map, const struct ct_segment *facts)
{
    for (uint32_t i = 0; map->blocks && i < blocks_of(facts); i++) {
        if (map->blocks[i].guard && atomic_load(&map->blocks[i].guard->poisoned))
            return true;
    }
    return false;
}

void ct_segment_map_finish(struct ct_segment_map *map, const struct ct_segment *facts)
{
    for (uint32_t i = 0; map->blocks && i < blocks_of(facts); i++) {
        if (!map->blocks[i].map)
            continue;
        ct_guard_remove(map->blocks[i].guard);
        munmap(map->blocks[i].map, map->blocks[i].bytes);
    }
    free(map->blocks);
    map->blocks = NULL;
}
