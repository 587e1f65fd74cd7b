/* Finds the allocation that a call freed. Calls are stored in the order in which they returned, but the
 * driver may have executed them in a different order. A call that frees memory may return after another
 * thread has allocated the address again. Therefore, only memory that was allocated when the call began
 * counts as freed (free_allocation in schema/store.sql). An allocation's record may also arrive after the
 * record of the call that freed it. For this reason, calls that free unknown memory are kept for a while. */
#ifndef CT_ALLOCATIONS_H
#define CT_ALLOCATIONS_H

#include <stdint.h>

struct ct_store;

/* Marks memory as freed. `value` has CT_FREE_VALUES values. If no matching allocation is known, counts the
 * call in process.unknown_frees. Returns 0 or -1. */
int ct_store_free_allocation(struct ct_store *store, const int64_t *value, const char *kind);
/* Marks memory that the process holds at the address as freed, because the address was allocated again.
 * `value` is process_id, address, call_id. Returns 0 or -1. */
int ct_store_supersede_allocation(struct ct_store *store, const int64_t *value, const char *kind);
/* Given an allocation whose row arrived late, checks whether a call that was kept (because it freed unknown
 * memory) freed this allocation. `value` is process_id, address, call_id. Returns 0 or -1. */
int ct_store_settle_late_allocation(struct ct_store *store, const int64_t *value, const char *kind);

#endif
