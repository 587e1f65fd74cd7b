/* Manages the process's segment on the hook's side: the file, the directory, and the lanes' memory.
 *
 * Only the collector relies on the segment's contents. Other processes can write to the segment, so the hook
 * keeps its own copy of the geometry and the counts. */
#ifndef CT_SEGMENT_FILE_H
#define CT_SEGMENT_FILE_H

#include "bound.h"
#include "find_daemon.h"
#include "program.h"
#include "segment.h"

/* The description of a new segment. */
struct ct_segment_plan {
    const struct ct_session *session;
    const struct ct_requested *requested;
    int32_t pid;  /* the process whose calls are recorded */
    uint32_t uid; /* the user of `pid`; read only for probes */
    enum ct_maker maker;
    const struct ct_program *program; /* the program of `pid`; NULL: describe the calling process */
    uint64_t exec_ns, absent_ns;
    uint64_t complete;     /* initial value of the segment's `complete`, for probes */
    int32_t producer;      /* of struct ct_segment */
    uint64_t gpu_until_ns; /* the first request for a recording of GPU work */
    /* Called before the segment is visible, with a descriptor for the open file description that holds the
     * segment's lock. The descriptor is closed afterwards. May be NULL. */
    void (*on_lock)(int description, void *data);
    void *data;
};

/* Creates a segment that replaces the previous one, which must no longer be in use by any thread. Returns
 * NULL on failure. Except for queries, all functions here require the process lock and permission for system
 * calls (system.h). */
struct ct_segment *ct_segment_create(const struct ct_segment_plan *plan);
/* Returns the errno with which the last ct_segment_create() has failed. */
int ct_segment_error(void);
/* Maps private memory over the segment, so that late writers do no harm. Must be called after the collector
 * has been notified that nothing more will be written. Takes no lock, and calls no functions outside the hook
 * except for system calls. */
void ct_segment_abandon(void);
/* In the child of a fork, forgets the parent's segment. */
void ct_segment_forget(void);
/* ct_segment_lanes() returns the number of lanes. ct_segment_lane() adds a lane, maps its header
 * (CT_LANE_HEADER_BYTES) at `lane_place`, and sets *ring to the address of its shortest ring. It returns NULL
 * if memory is refused. ct_segment_lane_done() publishes the lane once it is set up. */
uint32_t ct_segment_lanes(void);
struct ct_lane *ct_segment_lane(void *lane_place, uint8_t **ring);
void ct_segment_lane_done(void);
/* Returns the size in bytes of a lane's shortest ring. */
uint64_t ct_segment_first_bytes(uint32_t index);
/* Returns the number of slots in the longest allowed ring. */
uint64_t ct_segment_ring_slots(void);
/* A piece of a longer ring. `whole` is the current size of the ring in bytes. */
struct ct_ring_piece {
    uint64_t ring_bytes, from, bytes, whole;
};
/* Allocates a piece of a ring, so that it can be accessed even if the collector has removed its memory.
 * `ring` is the ring's address. If `ring` is NULL, maps the ring, and allocates memory only for this piece.
 * Returns the ring's address, or NULL if memory is refused. */
uint8_t *ct_segment_ring(uint32_t index, const struct ct_ring_piece *piece, uint8_t *ring);

/* True if the directory can hold another entry, either because its page is already allocated or because
 * memory may be allocated. */
bool ct_segment_may_define(void);
/* Defines a function in the directory and returns its function number, or 0 if the directory cannot grow.
 * Requires the process lock. */
uint16_t ct_segment_define(struct ct_segment *segment, const char *name, enum ct_layer layer,
                           uint32_t category);
/* True if shared memory may be allocated. False for one second after an allocation was refused. */
bool ct_segment_may_allocate(enum ct_bound_need need);
/* Returns the cause of calls that are lost because the last request for a longer ring was refused. */
enum ct_loss_cause ct_segment_refusal(void);

#endif
