#include "hook_segment.h"

#include "segment.h"

#include <unistd.h>

static struct ct_segment header;

static bool read_header(int segment)
{
    return pread(segment, &header, sizeof(header), 0) == sizeof(header) && header.magic == CT_SEGMENT_MAGIC &&
           header.version == CT_PROTO_VERSION && ct_segment_valid(&header);
}

bool ct_hook_segment_is_held(int segment)
{
    if (!read_header(segment))
        return false;
    const enum ct_segment_hold hold = ct_segment_hold(&header, segment);
    return hold == CT_SEGMENT_HELD ||
           (hold == CT_SEGMENT_HOLD_UNKNOWN && !(atomic_load(&header.flags) & CT_SEGMENT_LEFT));
}

bool ct_hook_segment_passed(int segment, uint32_t tid, uint64_t position)
{
    static struct ct_lane lane;
    if (!read_header(segment))
        return false;
    for (uint32_t i = 0; i < atomic_load(&header.lanes) && i < header.lane_slots; i++) {
        const off_t at = (off_t)ct_segment_lane_offset(&header, i);
        if (pread(segment, &lane, sizeof(lane), at) == sizeof(lane) && atomic_load(&lane.tid) == tid)
            return ct_lane_position(&lane) > position;
    }
    return false;
}
