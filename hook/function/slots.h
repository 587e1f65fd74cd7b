/* Exchanges the driver's own table of entry points. Nearly every function exported by libcuda jumps through a
 * pointer in writable memory, its slot. The code that a slot leads to gets all calls of the function, no
 * matter how the program found the function. It gets them after every other interposer. */
#ifndef CT_SLOTS_H
#define CT_SLOTS_H

#include "symbol.h"

#include <stdbool.h>
#include <stdint.h>

/* Finds the slots of functions whose code has a known shape, for the image `driver`. Sets `intercept` in the
 * rows of these functions, and `real` to the contents of the slot. Skips slots on pages that are not writable
 * at the moment, and returns their number. Requires the process lock. Call it before any stub has been handed
 * out. */
uint32_t ct_slots_find(uint32_t driver, const struct ct_object *image);
/* Exchanges the slots that were found, except slots that another library has changed after that, and slots on
 * pages that are not writable at the moment. Returns the number of slots that lead to stubs. May be called
 * again after ct_slots_put_back(). */
uint32_t ct_slots_take(uint32_t driver);

/* Adds a slot that a visit has made for a row of the first image (proto/visit.h), unless the row already has
 * a slot. ct_slots_take() exchanges it like the other slots, until ct_slots_put_back() forgets it. Requires
 * the process lock. */
void ct_slots_add_made(uint32_t row, void **slot);

/* Restores the slots of all images, with the same exceptions as ct_slots_take(). Open calls still return
 * through the stubs. Takes no lock, since a visit makes a stopped thread call this at any instruction. If
 * `checks` is false, makes no system call, and a page that is not writable raises SIGSEGV, which the
 * visitor's tracer catches. */
void ct_slots_put_back(bool checks);

#endif
