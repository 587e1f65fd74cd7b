/* Makes slots for driver functions that have none of their own (tools/inline/inline_plan.h). Memory from an
 * earlier visit is reused, because it must stay in the process. */
#ifndef CT_ATTACH_MADE_SLOTS_H
#define CT_ATTACH_MADE_SLOTS_H

#include "driver_slots.h"
#include "inline_verdicts.h"

#include <stdbool.h>
#include <stdint.h>

struct ct_made_slots {
    uint64_t list; /* address of an array of `count` struct ct_visit_slot in the process; 0: none */
    uint32_t count;
    uint32_t refused[CT_INLINE_VERDICTS];   /* functions left without a slot, by reason; all 0 if the list is
                                             * from an earlier visit */
    uint64_t stops, stopped_ns, longest_ns; /* number and durations of stops of one or all threads */
};

/* Returns whether this build supports made slots. */
bool ct_made_slots_possible(void);
/* Makes slots for all functions that have none, unless `list` already has the slots of an earlier visit. Adds
 * the made slots to `slots`, but no function uses them until ct_made_slots_enter(). Returns 0 or -errno. */
int ct_made_slots_prepare(struct ct_made_slots *made, struct ct_memory *memory,
                          struct ct_driver_slots *slots);
/* Write or remove the jumps to the made slots. Return 0 or -errno, like ct_patches_write(). A jump that
 * another tool has modified is left in place. */
int ct_made_slots_enter(struct ct_made_slots *made, struct ct_memory *memory);
int ct_made_slots_leave(struct ct_made_slots *made, struct ct_memory *memory);

#endif
