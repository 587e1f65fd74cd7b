/* Slots for functions of the driver that have none of their own (tools/inline/inline_plan.h). The memory of
 * an earlier visit is used again, since it must stay in the process. */
#ifndef CT_ATTACH_MADE_SLOTS_H
#define CT_ATTACH_MADE_SLOTS_H

#include "driver_slots.h"
#include "inline_verdicts.h"

#include <stdbool.h>
#include <stdint.h>

struct ct_made_slots {
    uint64_t list; /* address of struct ct_visit_slot[count] in the process; 0: none */
    uint32_t count;
    uint32_t refused[CT_INLINE_VERDICTS];   /* functions without a slot, by reason; 0 for an earlier list */
    uint64_t stops, stopped_ns, longest_ns; /* stops of one thread or of all threads */
};

/* Returns whether this build can make slots. */
bool ct_made_slots_possible(void);
/* Makes slots for all functions without one, unless `list` has the slots of an earlier visit. Adds them to
 * `slots`. No function uses them yet. Returns 0 or -errno. */
int ct_made_slots_prepare(struct ct_made_slots *made, struct ct_memory *memory,
                          struct ct_driver_slots *slots);
/* Write the jumps, or remove them. Return 0 or -errno, like ct_patches_write(). Jumps that another tool has
 * changed stay. */
int ct_made_slots_enter(struct ct_made_slots *made, struct ct_memory *memory);
int ct_made_slots_leave(struct ct_made_slots *made, struct ct_memory *memory);

#endif
