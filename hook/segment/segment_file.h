/* The process's segment as the hook keeps it: its file, its directory, the memory of its lanes.
 *
 * What stands in the segment is for the collector. Others can write there, so that nothing is read back from
 * it that anything is decided by: geometry and counts are kept here. */
#ifndef CT_SEGMENT_FILE_H
#define CT_SEGMENT_FILE_H

#include "bound.h"
#include "find_daemon.h"
#include "program.h"
#include "segment.h"

/* A segment to be made. */
struct ct_segment_plan {
    const struct ct_session *session;
    const struct ct_wishes *wishes;
    int32_t pid; /* the process that makes the calls */
    enum ct_maker maker;
    const struct ct_program *program; /* the process's; NULL: the calling process is described */
    uint64_t image_ns, absent_ns;
    uint64_t complete; /* the first value of the segment's, which probes have */
};

/* A segment in the place of the last one, which nobody has any more; NULL when that cannot be had. The
 * process lock is held in all of these but those that only ask, and system calls may be made (system.h). */
struct ct_segment *ct_segment_create(const struct ct_segment_plan *plan);
/* Maps private memory over the segment, so that late writers do no harm. The collector must know before that
 * nothing more is written. Takes no lock and makes no call except to the kernel. */
void ct_segment_abandon(void);
/* In a fork's child: it is its parent's. */
void ct_segment_forget(void);
/* The number of its lanes, and another one, with `lane_place` (CT_LANE_HEADER_BYTES) for its header, and its
 * shortest ring at *ring. NULL when memory is refused. It is counted once it is set up. */
uint32_t ct_segment_lanes(void);
struct ct_lane *ct_segment_lane(void *lane_place, uint8_t **ring);
void ct_segment_lane_done(void);
/* Bytes of the shortest ring of a lane. */
uint64_t ct_segment_first_bytes(uint32_t index);
/* Slots that the longest ring may have. */
uint64_t ct_segment_ring_slots(void);
/* A piece of one of a lane's longer rings; `whole`: what the ring has with it. */
struct ct_ring_piece {
    uint64_t ring_bytes, from, bytes, whole;
};
/* Makes the piece one that may be touched, also where it was one and no longer is: of the ring at that
 * address, or, where that is NULL, at one that it returns, with no other piece. NULL when memory is refused.
 */
uint8_t *ct_segment_ring(uint32_t index, const struct ct_ring_piece *piece, uint8_t *ring);

/* True if the directory may have another entry: on a page that it has already, or while memory may be asked
 * for. */
bool ct_segment_may_define(void);
/* The number of a new function in the directory, 0 where that cannot grow. The process lock is held. */
uint16_t ct_segment_define(struct ct_segment *segment, const char *name, enum ct_layer layer,
                           uint32_t category);
/* True if shared memory may be asked for: after a refusal, no sooner than a second later. */
bool ct_segment_may_allocate(enum ct_bound_need need);

#endif
