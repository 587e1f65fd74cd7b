#include "hook_segment.h"

#include "regular_file.h"
#include "segment.h"

#include <stdlib.h>
#include <unistd.h>

void ct_hook_segment_open(struct ct_hook_segment *segment, const char *path)
{
    struct stat status;
    const int fd = ct_regular_file_open(path, &status);
    if (fd < 0)
        return;
    if (segment->inode == status.st_ino && segment->device == status.st_dev) {
        close(fd);
        return;
    }
    ct_hook_segment_close(segment);
    *segment = (struct ct_hook_segment){ .fd = fd, .device = status.st_dev, .inode = status.st_ino };
}

void ct_hook_segment_close(struct ct_hook_segment *segment)
{
    if (segment->fd >= 0)
        close(segment->fd);
    free(segment->lane);
    *segment = CT_HOOK_SEGMENT_NONE;
}

static bool read_header(int fd, struct ct_segment *header)
{
    return pread(fd, header, sizeof(*header), 0) == sizeof(*header) && header->magic == CT_SEGMENT_MAGIC &&
           header->version == CT_PROTO_VERSION && ct_segment_valid(header);
}

static void copy_lanes(struct ct_hook_segment *segment, const struct ct_segment *header)
{
    const uint32_t defined = atomic_load(&header->lanes);
    const uint32_t count = defined < header->lane_slots ? defined : header->lane_slots;
    static struct ct_lane lane;
    segment->lane = calloc(count, sizeof(segment->lane[0]));
    for (uint32_t i = 0; segment->lane && i < count; i++) {
        if (pread(segment->fd, &lane, sizeof(lane), (off_t)ct_segment_lane_offset(header, i)) != sizeof(lane))
            break;
        segment->lane[i] =
            (struct ct_hook_lane){ .position = ct_lane_position(&lane), .tid = atomic_load(&lane.tid) };
        segment->lanes++;
    }
}

bool ct_hook_segment_is_held(struct ct_hook_segment *segment)
{
    static struct ct_segment header;
    if (segment->fd < 0)
        return false;
    const bool is_read = read_header(segment->fd, &header);
    const enum ct_segment_hold hold = is_read ? ct_segment_hold(&header, segment->fd) : CT_SEGMENT_LET_GO;
    if (hold == CT_SEGMENT_HELD ||
        (hold == CT_SEGMENT_HOLD_UNKNOWN && !(atomic_load(&header.flags) & CT_SEGMENT_LEFT)))
        return true;
    if (is_read)
        copy_lanes(segment, &header);
    close(segment->fd);
    segment->fd = -1;
    return false;
}

bool ct_hook_segment_passed(const struct ct_hook_segment *segment, uint32_t tid, uint64_t position)
{
    for (uint32_t i = 0; i < segment->lanes; i++) {
        if (segment->lane[i].tid == tid)
            return segment->lane[i].position > position;
    }
    return false;
}
