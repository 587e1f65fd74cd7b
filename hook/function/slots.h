/* Exchanges the driver's own table of entry points. Nearly every function exported by libcuda jumps through a
 * pointer in writable memory, its slot. The slot's owner gets each call of the function, however the program
 * found the function, and after every other interposer. */
#ifndef CT_SLOTS_H
#define CT_SLOTS_H

#include "symbol.h"

#include <stdbool.h>
#include <stdint.h>

/* Finds the slots of an image's rows (CT_DRIVER_ROW() of its number) whose `real` has a known shape. Sets
 * `intercept` in each of these rows, and `real` to the slot's content. Returns the number of other slots that
 * are on pages not writable now. Requires the process lock. No stub has been handed out yet. */
uint32_t ct_slots_find(uint32_t driver, const struct ct_object *image);
/* Exchanges the slots found, except those that another library has written since or whose pages are not
 * writable now. Returns the number of slots that lead to stubs. May be called again after
 * ct_slots_put_back(). */
uint32_t ct_slots_take(uint32_t driver);

/* Adds a slot that a visit has made for a row of the first image (proto/visit.h), unless the row has one. It
 * is exchanged with the others until they are restored. Requires the process lock. */
void ct_slots_add_made(uint32_t row, void **slot);

/* Restores the slots of all images, with the same exceptions. Open calls return through the stubs. Takes no
 * lock, so that a visit can have a stopped thread call it anywhere. Unless `checks` is set, it makes no
 * system call, and a page that is not writable raises SIGSEGV, which the visitor's tracer catches. */
void ct_slots_put_back(bool checks);

#endif
