/* The device's addresses, by bookkeeping: copies by unified addresses do not say their direction,
 * and asking the driver would be a call that the program never made. */
#ifndef CT_ADDRESSES_H
#define CT_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

/* `bytes` from `address` on are memory of a device, or addresses kept for it. */
void ct_addresses_learn(uint64_t address, uint64_t bytes);
/* The same range is so no more, by a call that began at `began` (ct_now()). Nothing happens for an address
 * that no range begins at, or one that was learned since: the driver has handed it out again before that call
 * returned. */
void ct_addresses_forget(uint64_t address, uint64_t began);
bool ct_addresses_are_device(uint64_t address);

#endif
