/* The lanes of a segment, mapped in blocks: a process may have 65,530 mappings by the kernel's default, and a
 * segment 4,096 lanes. What lies behind the end of the file is mapped too, and can be touched once the file
 * reaches there. Worker's thread. */
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

/* All zero is one without any block. */
struct ct_segment_map {
    struct ct_segment_block
        *blocks; /* room for those of all lanes that the segment may have, once there is one */
};

/* The lane in shared memory, whose block is mapped if it was not: 0, -EPROTO where the file ends before it,
 * or -errno. */
int ct_segment_map_lane(struct ct_segment_map *map, const struct ct_segment *facts, int fd, uint32_t index,
                        struct ct_lane **lane);
/* Returns whether the file was cut short below a block. */
bool ct_segment_map_is_poisoned(const struct ct_segment_map *map, const struct ct_segment *facts);
void ct_segment_map_finish(struct ct_segment_map *map, const struct ct_segment *facts);

#endif
