/* Keeps statements that arise while calls are taken, in order, until the end of the batch. */
#ifndef CT_DEFERRED_H
#define CT_DEFERRED_H

#include "store_names.h"
#include "value.h"

#include <stdbool.h>
#include <stddef.h>

struct ct_store;

/* Defers a statement with its integers, then its text if it has one. Three names do more than their
 * statement. insert_kernel (process_id, number; the mangled name) also makes the name's own row.
 * free_allocation (CT_FREE_VALUES; the kind) and supersede_late_allocation are in allocations.h. */
void ct_store_defer(struct ct_store *store, enum ct_statement statement, size_t values, const int64_t *value,
                    const char *text);

/* Returns whether the batch has its maximum of details, so that the next call belongs to another batch. */
bool ct_store_is_full(const struct ct_store *store);

/* For the store only. Pass on the statements taken, run those (returns 0 or -1), discard all, and tear down.
 */
void ct_deferred_hand_over(struct ct_store *store);
int ct_deferred_run(struct ct_store *store);
void ct_deferred_clear(struct ct_store *store);
void ct_deferred_finish(struct ct_store *store);

#endif
