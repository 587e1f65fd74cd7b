/* Replaces entries in the driver's own table of entry points. Nearly every function exported by libcuda jumps
 * through a pointer in writable memory, called its slot. The code that the slot points to receives all calls
 * to the function, no matter how the program found the function, and runs after every other interposer. */
#ifndef CT_SLOTS_H
#define CT_SLOTS_H

#include "symbol.h"

#include <stdbool.h>
#include <stdint.h>

/* Finds the slots of functions whose code has a known shape, in the image `driver`. Sets `intercept` in the
 * rows of these functions, and `real` to the contents of the slot. Skips slots on pages that are not
 * currently writable, and returns the number of slots skipped. Requires the process lock. Must be called
 * before any stub has been handed out. */
uint32_t ct_slots_find(uint32_t driver, const struct ct_object *image);
/* Exchanges the slots found by ct_slots_find(), except those that another library has since changed, and
 * those on pages that are not currently writable. Returns the number of slots that lead to stubs. May be
 * called again after ct_slots_put_back(). */
uint32_t ct_slots_take(uint32_t driver);

/* Adds a slot created by a visit (proto/visit.h) for a row of the first image, unless the row already has a
 * slot. Like any other slot, it is exchanged by ct_slots_take(), until ct_slots_put_back() forgets it.
 * Requires the process lock. */
void ct_slots_add_made(uint32_t row, void **slot);

/* Restores the slots of all images, with the same exceptions as ct_slots_take(). Open calls still return
 * through the stubs. Takes no lock, since a visit may force a thread to call this function at any
 * instruction. If `checks` is false, makes no system calls. Writing to a page that is not writable then
 * raises SIGSEGV, which the visiting tracer catches. */
void ct_slots_put_back(bool checks);

#endif
