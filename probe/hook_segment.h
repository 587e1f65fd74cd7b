/* The probe's view of the segment of a hook that visits a process (visits.h). */
#ifndef CT_PROBE_HOOK_SEGMENT_H
#define CT_PROBE_HOOK_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ct_hook_lane {
    uint64_t position;
    uint32_t tid;
};

struct ct_hook_segment {
    int fd; /* of the file while the hook holds the segment, otherwise -1 */
    dev_t device;
    ino_t inode;
    struct ct_hook_lane *lane; /* the lanes after that; NULL if there are none */
    uint32_t lanes;
};
#define CT_HOOK_SEGMENT_NONE ((struct ct_hook_segment){ .fd = -1 })

/* Opens the segment at the path, and closes the previous one. Does nothing if both are the same file, or if
 * the path cannot be opened. */
void ct_hook_segment_open(struct ct_hook_segment *segment, const char *path);
/* Frees what the segment owns. */
void ct_hook_segment_close(struct ct_hook_segment *segment);

/* Returns whether the hook holds the segment, in which case the process can have no other segment. If the
 * hook no longer holds it, copies the positions of the lanes, which are then final, and closes the file. An
 * open descriptor would keep the memory of a removed segment in use. */
bool ct_hook_segment_is_held(struct ct_hook_segment *segment);

/* Returns whether the thread's lane has passed the position, in a segment that is no longer held. Returns
 * false if the segment contains no lane of the thread. */
bool ct_hook_segment_passed(const struct ct_hook_segment *segment, uint32_t tid, uint64_t position);

#endif
