/* Maps the lanes of a segment in blocks, because a segment may have 4,096 lanes, while the kernel by default
 * allows a process only 65,530 mappings. A block may be mapped past the end of the file, and becomes
 * accessible when the file grows. Used only on the worker thread. */
#ifndef CT_SEGMENT_MAP_H
#define CT_SEGMENT_MAP_H

#include "cut_guard.h"
#include "segment.h"

enum { CT_BLOCK_LANES = 64, CT_BLOCKS_MAX = CT_LANES_MAX / CT_BLOCK_LANES };

struct ct_segment_block {
    uint8_t *map; /* NULL: not mapped yet */
    size_t bytes;
    struct ct_guard *guard;
};

/* A zeroed struct has no blocks. */
struct ct_segment_map {
    struct ct_segment_block *blocks; /* room for all possible lanes' blocks; NULL before the first block */
};

/* Finds a lane in shared memory, and maps its block if necessary. Returns 0 or -errno, which is -EPROTO if
 * the file ends before the lane. */
int ct_segment_map_lane(struct ct_segment_map *map, const struct ct_segment *facts, int fd, uint32_t index,
                        struct ct_lane **lane);
/* Returns whether the file was truncated and no longer contains all mapped blocks. */
bool ct_segment_map_is_poisoned(const struct ct_segment_map *map, const struct ct_segment *facts);
void ct_segment_map_finish(struct ct_segment_map *map, const struct ct_segment *facts);

#endif
