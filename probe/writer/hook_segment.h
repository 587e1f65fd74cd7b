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

/* Opens the segment at the path, and closes the segment that was open before. Does nothing if the same file
 * is already open, or if the path cannot be opened. */
void ct_hook_segment_open(struct ct_hook_segment *segment, const char *path);
/* Frees what the segment owns. */
void ct_hook_segment_close(struct ct_hook_segment *segment);

/* Returns whether the hook still holds the segment. Until the hook releases it, the process cannot have
 * another segment. After that, copies the final positions of the lanes and closes the file, since an open
 * descriptor would keep the memory of a removed segment in use. */
bool ct_hook_segment_is_held(struct ct_hook_segment *segment);

/* Returns whether the position of the thread's lane was higher than `position` when the hook released the
 * segment. Returns false if the segment contains no lane of the thread. */
bool ct_hook_segment_passed(const struct ct_hook_segment *segment, uint32_t tid, uint64_t position);

#endif
