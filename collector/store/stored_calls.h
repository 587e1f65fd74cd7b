/* Adds calls and their details to the tables. */
#ifndef CT_STORED_CALLS_H
#define CT_STORED_CALLS_H

#include "call.h"

#include <stdbool.h>

struct ct_store;

/* Returns whether the batch can take another call. Returns false if memory is short, if a step has failed, or
 * if details and late calls have used up the batch's limits. */
bool ct_store_takes_calls(const struct ct_store *store);
/* Stores a call with its details, and returns its call_id. The call's process, thread and function must have
 * IDs. If a step fails, the batch fails. */
int64_t ct_store_call(struct ct_store *store, const struct ct_call *call);
/* Returns the total cost of everything that was stored, except for the calls themselves, measured in rows of
 * plain calls.
 */
uint64_t ct_store_effort(const struct ct_store *store);
uint64_t ct_store_late_rows(const struct ct_store *store);
/* Returns the return time of the newest call in the trace, or 0 if there are no calls. */
uint64_t ct_store_newest_call(const struct ct_store *store);

/* ---- only for the store ---- */

void ct_stored_calls_init(struct ct_store *store);
void ct_stored_calls_finish(struct ct_store *store);
/* Counts the late rows of a committed batch. */
void ct_stored_calls_committed(struct ct_store *store);
/* Discards late rows, whichever batch they belong to. */
void ct_stored_calls_clear(struct ct_store *store);

#endif
