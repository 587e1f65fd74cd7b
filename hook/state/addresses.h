/* Keeps track of device addresses. Copies by unified addresses do not give their direction, and querying the
 * driver would be a call that the program never made. */
#ifndef CT_ADDRESSES_H
#define CT_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

/* Notes that `bytes` from `address` on are memory of a device, or addresses reserved for it. */
void ct_addresses_learn(uint64_t address, uint64_t bytes);
/* Forgets the range, released by a call that began at `began` (ct_now()). Does nothing if no range begins at
 * `address`, or if it was learned since: then the driver handed it out again before that call returned. */
void ct_addresses_forget(uint64_t address, uint64_t began);
bool ct_addresses_are_device(uint64_t address);

#endif
