/* The collector's view of a lane's rings. Finds the ring that contains a slot, and the memory that is no
 * longer needed. The shortest ring is mapped. Longer rings are read from the file, so that they use no
 * address space, whatever length a process claims. */
#ifndef CT_SHM_RINGS_H
#define CT_SHM_RINGS_H

#include "shm_process.h"

/* A lane's rings. `process`, `shared` and `index` do not change. */
struct ct_lane_rings {
    const struct ct_shm_process *process;
    struct ct_lane *shared;
    uint32_t index;             /* of the lane */
    uint32_t count;             /* of rings */
    uint64_t most;              /* slots of the longest ring */
    uint64_t since[CT_RINGS];   /* read after the position */
    struct ct_lane_window seen; /* read after the position */
    uint64_t peak, peak_since_ns;
    /* The part of each ring that was last freed. If the producer began the ring at `since` and has left it,
     * this part is the whole ring. If the producer still uses the ring, this part begins after `upto`, and
     * the producer must not write there until it has checked the lane again. */
    struct {
        uint64_t since, upto;
    } given[CT_RINGS];
};

void ct_lane_rings_init(struct ct_lane_rings *rings, const struct ct_shm_process *process,
                        struct ct_lane *shared, uint32_t index);
/* Determines which rings are in use. Call after reading the position. */
void ct_lane_rings_look(struct ct_lane_rings *rings);
/* Copies slots that have been published but not returned. Slots that the file does not contain are copied as
 * zeros. */
void ct_lane_rings_read(const struct ct_lane_rings *rings, uint64_t position, uint64_t slots, uint8_t *to);
/* Returns the number of slots that the lane had when ct_lane_rings_look() was last called. A lane that can
 * still grow counts as having at least 2 MiB of slots. */
uint64_t ct_lane_rings_slots(const struct ct_lane_rings *rings);
/* Frees up to *budget bytes of memory that has not been needed for a while. `tail` is the position last
 * returned to the producer, and `used` is the number of slots that were waiting for the batch. */
void ct_lane_rings_tidy(struct ct_lane_rings *rings, uint64_t tail, uint64_t used, uint64_t now_ns,
                        uint64_t *budget);

#endif
