/* Slots: each has a producer, and knows where its lane is mapped; there are as many as threads had lanes at
 * once. A lane is a thread's until that gives it back, and is taken by the next thread then. */
#ifndef CT_SLOT_H
#define CT_SLOT_H

#include "producer.h"

enum ct_slot_owner {
    CT_SLOT_SPARE = 0, /* nobody's, and no lane of the current segment */
    CT_SLOT_FREE,      /* a lane whose thread has given it back; of an earlier segment it is a spare one */
    CT_SLOT_OWNED,
    /* Its thread has let go of it while a call was open, which may be about to enter or to leave, and come to
     * its end after a handler's. */
    CT_SLOT_LEFT,
};
void ct_slot_set_owner(struct ct_producer *producer, enum ct_slot_owner owner);

/* A lane that its thread gave back, or a new one: NULL when there is none. The process lock is held, and for
 * a new one system calls may be made. */
struct ct_producer *ct_slot_take_free(void);
struct ct_producer *ct_slot_take_new(struct ct_segment *segment);
/* True if it is worth asking for either. */
bool ct_slot_may_take(void);
/* For the next thread. */
void ct_slot_give_back(struct ct_producer *producer);

/* The mappings of the lane's rings: inherited by a fork's child, as the memory is. The shortest one stays, so
 * that it can be turned to where no system call may be made. */
struct ct_slot_map {
    uint8_t *ring; /* the shortest one; NULL: none is mapped */
    uint64_t ring_bytes;
    uint8_t *longer; /* one longer ring, or NULL */
    uint64_t longer_bytes;
    uint8_t *used; /* the one in use */
    bool is_kept;  /* the child of a fork has private memory there for good */
};
struct ct_slot_map *ct_slot_map(const struct ct_producer *producer);
/* The rings of a lane that is written no more. */
void ct_slot_drop_rings(struct ct_slot_map *map);

/* Puts private memory in the place of the lanes of the segment, which is given up: what is still written
 * there harms nobody, and the shared memory is free. The process lock is held. */
void ct_slots_abandon(void);
/* The same for one lane that was mapped in the parent of a fork, in the child; NULL for none. No other is
 * free. */
void ct_slots_redirect(struct ct_producer *producer, struct ct_slot_map *map, struct ct_lane *lane);

#endif
