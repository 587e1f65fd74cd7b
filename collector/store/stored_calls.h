/* Adds calls, with their details, to their tables. */
#ifndef CT_STORED_CALLS_H
#define CT_STORED_CALLS_H

#include "call.h"

#include <stdbool.h>

struct ct_store;

/* Returns whether the batch can take another call. It cannot if memory is short, a step has failed, or
 * details and late calls have used up the batch's limits. */
bool ct_store_takes_calls(const struct ct_store *store);
/* Stores a call with its details, and returns its call_id. Its process, thread and function have numbers.
 * If a step fails, the batch fails. */
int64_t ct_store_call(struct ct_store *store, const struct ct_call *call);
/* Returns the total cost of everything stored, in rows of plain calls. The calls themselves are not included.
 */
uint64_t ct_store_effort(const struct ct_store *store);
uint64_t ct_store_late_rows(const struct ct_store *store);
/* Returns the return time of the newest call in the trace, or 0 if it has no calls. */
uint64_t ct_store_newest_call(const struct ct_store *store);

/* For the store only. Set up and tear down. Count the late rows of a committed batch. Forget the late rows of
 * any batch. */
void ct_stored_calls_init(struct ct_store *store);
void ct_stored_calls_finish(struct ct_store *store);
void ct_stored_calls_committed(struct ct_store *store);
void ct_stored_calls_clear(struct ct_store *store);

#endif
