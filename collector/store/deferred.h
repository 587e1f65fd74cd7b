/* Keeps the statements that result from taking calls until the end of the batch, in order. */
#ifndef CT_DEFERRED_H
#define CT_DEFERRED_H

#include "store_names.h"
#include "value.h"

#include <stdbool.h>
#include <stddef.h>

struct ct_store;

/* Defers a statement with its integers and, if it has one, its text. Three names do more than run their
 * statement. insert_kernel (process_id, number; the mangled name) also makes a row for the name.
 * free_allocation (CT_FREE_VALUES; the kind) and supersede_late_allocation call the functions of
 * allocations.h. */
void ct_store_defer(struct ct_store *store, enum ct_statement statement, size_t values, const int64_t *value,
                    const char *text);

/* Returns whether the batch has its maximum of details. The next call then belongs to another batch. */
bool ct_store_is_full(const struct ct_store *store);

/* For the store only. Hand over the deferred statements to the commit, run these (returns 0 or -1), discard
 * all statements, and tear down. */
void ct_deferred_hand_over(struct ct_store *store);
int ct_deferred_run(struct ct_store *store);
void ct_deferred_clear(struct ct_store *store);
void ct_deferred_finish(struct ct_store *store);

#endif
