/* Calls and their details on the way into their tables. A call's id is decided first, since its details will
 * name it. */
#ifndef CT_STORED_CALLS_H
#define CT_STORED_CALLS_H

#include "store_names.h"
#include "value.h"

struct ct_store;

/* Returns whether the batch may have another call: memory is there, nothing has failed, and details and late
 * calls have not used up what a batch may spend on them. */
bool ct_store_takes_calls(const struct ct_store *store);
/* Of each call, once it is known when it returned: where it is placed, */
void ct_store_place(struct ct_store *store, uint64_t end_ns);
/* the row of the call that was placed, with the same time of return, */
void ct_store_call(struct ct_store *store, const struct ct_row *row);
/* and a row of its details, whose values behind the call_id are for the caller to write. */
int64_t *ct_store_add(struct ct_store *store, enum ct_bulk table);
/* The call_id of the call that was placed, */
uint64_t ct_store_call_id(const struct ct_store *store);
/* and whether later ones are stored already. */
bool ct_store_is_late(const struct ct_store *store);
/* Returns what all that was stored has cost, in rows of plain calls; these are not counted themselves. */
uint64_t ct_store_effort(const struct ct_store *store);
uint64_t ct_store_late_rows(const struct ct_store *store);
/* Returns when the newest call of the trace returned, 0 without any. */
uint64_t ct_store_newest_call(const struct ct_store *store);

/* The store's own: begins and ends; forgets the late rows of a batch, committed or not. */
void ct_stored_calls_init(struct ct_store *store);
void ct_stored_calls_finish(struct ct_store *store);
void ct_stored_calls_committed(struct ct_store *store);
void ct_stored_calls_clear(struct ct_store *store);

#endif
