/* Finds the allocation that a call gave back. Calls are stored in the order of their return, and that is not
 * the order in which the driver did what they asked for: a call that frees may return after another thread
 * has got the address again. Intervals tell: a call gives back what had been got when it began
 * (free_allocation in schema/store.sql). Records of an allocation may also come after those of the call that
 * gives it back: such calls are remembered here for a while. */
#ifndef CT_ALLOCATIONS_H
#define CT_ALLOCATIONS_H

#include <stdint.h>

struct ct_store;

/* A call gives memory back: the values of CT_FREE_VALUES. Counts it in process.unknown_frees if no allocation
 * is known. 0 or -1. */
int ct_store_free_allocation(struct ct_store *store, const int64_t *value, const char *kind);
/* An allocation came behind younger rows: process_id, address, call_id. */
int ct_store_settle_late_allocation(struct ct_store *store, const int64_t *value);

#endif
