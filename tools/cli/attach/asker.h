/* Examines the thread that is about to load the hook, and waits for a grant. */
#ifndef CT_ATTACH_ASKER_H
#define CT_ATTACH_ASKER_H

#include "area.h"
#include "target.h"

/* Returns why the thread may not load a library in its current call, as the end of a sentence about the call,
 * or NULL if it may. Otherwise, it could wait for a lock for ever, which the code that a signal has
 * interrupted holds, or a thread that waits for this one. The area's data says which thread asks. Handlers
 * are found by their frames on the thread's stack, so calls on other stacks, and calls deep in a stack, are
 * left alone. */
const char *ct_asker_not_now(struct ct_target *target, const struct ct_area_data *data);

#endif
