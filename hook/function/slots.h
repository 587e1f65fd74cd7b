/* Exchanges the driver's own table of entry points. Nearly every function that libcuda exports goes on
 * through a pointer in memory that may be written, a slot. Its owner has each call of the function, whichever
 * way the program came by it, and below whatever else stands in front of the driver. */
#ifndef CT_SLOTS_H
#define CT_SLOTS_H

#include "symbol.h"

#include <stdint.h>

/* Exchanges the slots of the rows whose `real` is exported by that image of the driver, and is of a known
 * shape: `real` is what stood there from then on. Returns how many. The process lock is held, no stub was
 * handed out, and it is done once. */
uint32_t ct_slots_take(const struct ct_object *image);

/* Puts back what was in the slots, except in those that another library has written since. Calls that are
 * open return through the stubs. Takes no lock, so that a visit can have a stopped thread call it anywhere.
 */
void ct_slots_put_back(void);
/* Exchanges again what was put back, except slots that another library has written since. */
void ct_slots_take_again(void);

#endif
