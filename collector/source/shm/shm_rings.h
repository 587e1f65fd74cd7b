/* The rings of a lane as the collector sees them: which slot is in which one, and what of them is needed no
 * more. The shortest ring is mapped; the longer ones are read from the file, so that they take no addresses
 * however long a process says they are. */
#ifndef CT_SHM_RINGS_H
#define CT_SHM_RINGS_H

#include "shm_process.h"

/* A lane's rings; whose they are is the same for all calls. */
struct ct_lane_rings {
    const struct ct_shm_process *process;
    struct ct_lane *shared;
    uint32_t index;             /* of the lane */
    uint32_t count;             /* of rings */
    uint64_t most;              /* slots of the longest */
    uint64_t since[CT_RINGS];   /* as it was behind the position */
    struct ct_lane_window seen; /* likewise */
    uint64_t peak, peak_since_ns;
    /* Says what was given back last: all of a ring that was begun there and left, or what was not to be
     * written before another look. */
    struct {
        uint64_t since, upto;
    } given[CT_RINGS];
};

void ct_lane_rings_init(struct ct_lane_rings *rings, const struct ct_shm_process *process,
                        struct ct_lane *shared, uint32_t index);
/* Looks which rings are in use; to be called behind reading the position. */
void ct_lane_rings_look(struct ct_lane_rings *rings);
/* Copies slots that were published and not given back; zeros in the place of those that the file has not. */
void ct_lane_rings_read(const struct ct_lane_rings *rings, uint64_t position, uint64_t slots, uint8_t *to);
/* Slots that the lane has, as far as it was looked at, or is to get before it is called full. */
uint64_t ct_lane_rings_slots(const struct ct_lane_rings *rings);
/* Gives memory back that was not needed for a while. `tail` is what was given back last, and `used` slots
 * waited for the batch; *budget bytes may be given back. */
void ct_lane_rings_tidy(struct ct_lane_rings *rings, uint64_t tail, uint64_t used, uint64_t now_ns,
                        uint64_t *budget);

#endif
