/* Adds calls and their details to their tables. A call's id is set first, since its details refer to it. */
#ifndef CT_STORED_CALLS_H
#define CT_STORED_CALLS_H

#include "store_names.h"
#include "value.h"

struct ct_store;

/* Returns whether the batch can take another call. It cannot if memory is short, a step has failed, or
 * details and late calls have used up the batch's limits. */
bool ct_store_takes_calls(const struct ct_store *store);
/* Sets the place of a call. Call it for each call once its return time is known. */
void ct_store_place(struct ct_store *store, uint64_t end_ns);
/* Adds the row of the placed call, with the same return time. */
void ct_store_call(struct ct_store *store, const struct ct_call_row *row);
/* Adds a row of details. The caller sets the values after the call_id. */
int64_t *ct_store_add(struct ct_store *store, enum ct_bulk table);
/* Returns the call_id of the placed call. */
uint64_t ct_store_call_id(const struct ct_store *store);
/* Returns whether a call with a later id is stored already. */
bool ct_store_is_late(const struct ct_store *store);
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
