/* Replaces made_slots.c in builds without an instruction decoder. */
#include "made_slots.h"

#include <errno.h>

bool ct_made_slots_possible(void)
{
    return false;
}

int ct_made_slots_prepare(struct ct_made_slots *made, struct ct_memory *memory, struct ct_driver_slots *slots)
{
    (void)memory, (void)slots;
    return made->count == 0 ? 0 : -ENOTSUP;
}

int ct_made_slots_enter(struct ct_made_slots *made, struct ct_memory *memory)
{
    (void)memory;
    return made->count == 0 ? 0 : -ENOTSUP;
}

int ct_made_slots_leave(struct ct_made_slots *made, struct ct_memory *memory)
{
    (void)memory;
    return made->count == 0 ? 0 : -ENOTSUP;
}
