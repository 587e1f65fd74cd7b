/* Keeps track of device addresses. The arguments of a copy between unified addresses do not show its
 * direction, and a query to the driver would be an additional call, which the program never made. */
#ifndef CT_ADDRESSES_H
#define CT_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

/* Notes that the `bytes` bytes at `address` are device memory, or addresses reserved for device memory. */
void ct_addresses_learn(uint64_t address, uint64_t bytes);
/* Forgets a range that was released by a call that began at `began` (ct_now()). Does nothing if no range
 * begins at `address`, or if the range was learned after `began`, because the driver must have reused the
 * address before the call returned. */
void ct_addresses_forget(uint64_t address, uint64_t began);
bool ct_addresses_are_device(uint64_t address);

#endif
