/* Exchanges the driver's own table of entry points. Nearly every function that libcuda exports goes on
 * through a pointer in memory that may be written, a slot. Its owner has each call of the function, whichever
 * way the program came by it, and below whatever else stands in front of the driver. */
#ifndef CT_SLOTS_H
#define CT_SLOTS_H

#include "symbol.h"

#include <stdbool.h>
#include <stdint.h>

/* Finds the slots of an image's rows (CT_DRIVER_ROW() of its number) whose `real` has a known shape.
 * Sets each such row's `real` to the slot's content, and its `way`. Returns how many more slots are on pages
 * that may not be written now. The process lock is held, and no stub was handed out. */
uint32_t ct_slots_find(uint32_t driver, const struct ct_object *image);
/* Exchanges the slots that were found, except those that another library has written since or whose pages may
 * not be written now. Returns how many lead to stubs. Also after ct_slots_put_back(). */
uint32_t ct_slots_take(uint32_t driver);

/* Adds a slot that a visit has made for a row of the first image (proto/visit.h), unless the row has one. It
 * is exchanged with the others, until they are put back. The process lock is held. */
void ct_slots_add_made(uint32_t row, void **slot);

/* Puts back what was in the slots of all images, with the same exceptions. Calls that are open return through
 * the stubs. Takes no lock, so that a visit can have a stopped thread call it anywhere. Unless `checks`, it
 * makes no system call. Then a page that may not be written raises SIGSEGV, which the visitor's tracer
 * catches. */
void ct_slots_put_back(bool checks);

#endif
