/* The collector's view of a lane's rings: which slot is in which ring, and which memory is no longer needed.
 * The shortest ring is mapped. Longer ones are read from the file, so that they use no address space, no
 * matter what length a process claims. */
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
    /* The part of each ring that was last returned. It is the whole ring if the producer began it at `since`
     * and has left it. Otherwise, it is the part after `upto`, which the producer may not write before it
     * looks again. */
    struct {
        uint64_t since, upto;
    } given[CT_RINGS];
};

void ct_lane_rings_init(struct ct_lane_rings *rings, const struct ct_shm_process *process,
                        struct ct_lane *shared, uint32_t index);
/* Finds the rings in use. Call after reading the position. */
void ct_lane_rings_look(struct ct_lane_rings *rings);
/* Copies slots that were published but not returned. Slots that the file does not have are copied as
 * zeros. */
void ct_lane_rings_read(const struct ct_lane_rings *rings, uint64_t position, uint64_t slots, uint8_t *to);
/* Returns the number of slots that the lane had when last looked at. A lane that can still grow counts as
 * having at least 2 MiB of slots. */
uint64_t ct_lane_rings_slots(const struct ct_lane_rings *rings);
/* Frees memory that was not needed for a while. `tail` is the position last returned to the producer, and
 * `used` the number of slots that waited for the batch. Frees at most *budget bytes. */
void ct_lane_rings_tidy(struct ct_lane_rings *rings, uint64_t tail, uint64_t used, uint64_t now_ns,
                        uint64_t *budget);

#endif
