/* The hook's side of the process's segment: its file, its directory, the memory of its lanes.
 *
 * The segment's contents are for the collector. Other processes can write there, so the hook bases no
 * decision on them and keeps geometry and counts here. */
#ifndef CT_SEGMENT_FILE_H
#define CT_SEGMENT_FILE_H

#include "bound.h"
#include "find_daemon.h"
#include "program.h"
#include "segment.h"

/* A description of a segment to be created. */
struct ct_segment_plan {
    const struct ct_session *session;
    const struct ct_requested *requested;
    int32_t pid;  /* the process whose calls are recorded */
    uint32_t uid; /* its user; read only for probes */
    enum ct_maker maker;
    const struct ct_program *program; /* the program of `pid`; NULL: describe the calling process */
    uint64_t exec_ns, absent_ns;
    uint64_t complete; /* initial value of the segment's `complete`, for probes */
};

/* Creates a segment in place of the last one, which no thread uses any more. Returns NULL on failure. Except
 * for queries, all of these functions require the process lock and permission for system calls (system.h). */
struct ct_segment *ct_segment_create(const struct ct_segment_plan *plan);
/* Maps private memory over the segment, so that late writers do no harm. The collector must have been
 * notified before that nothing more will be written. Takes no lock and calls nothing except the kernel. */
void ct_segment_abandon(void);
/* In a fork's child: forgets the parent's segment. */
void ct_segment_forget(void);
/* ct_segment_lanes() returns the number of lanes. ct_segment_lane() adds one, with its header at `lane_place`
 * (CT_LANE_HEADER_BYTES) and its shortest ring at *ring, or returns NULL if memory is refused.
 * ct_segment_lane_done() counts it once it is set up. */
uint32_t ct_segment_lanes(void);
struct ct_lane *ct_segment_lane(void *lane_place, uint8_t **ring);
void ct_segment_lane_done(void);
/* Returns the bytes of a lane's shortest ring. */
uint64_t ct_segment_first_bytes(uint32_t index);
/* Returns the maximum number of slots of the longest ring. */
uint64_t ct_segment_ring_slots(void);
/* A piece of one of a lane's longer rings. `whole` is the size of the ring up to and including this piece. */
struct ct_ring_piece {
    uint64_t ring_bytes, from, bytes, whole;
};
/* Makes a piece touchable, even if it was before and its memory has been taken away. `ring` is the ring's
 * address; if NULL, the ring is mapped with this piece only. Returns the ring's address, NULL if memory is
 * refused. */
uint8_t *ct_segment_ring(uint32_t index, const struct ct_ring_piece *piece, uint8_t *ring);

/* True if the directory can take another entry: on a page that is already allocated, or while memory may be
 * allocated. */
bool ct_segment_may_define(void);
/* Defines a function in the directory and returns its number, 0 if the directory cannot grow. Requires the
 * process lock. */
uint16_t ct_segment_define(struct ct_segment *segment, const char *name, enum ct_layer layer,
                           uint32_t category);
/* True if shared memory may be allocated. False for one second after a refusal. */
bool ct_segment_may_allocate(enum ct_bound_need need);

#endif
