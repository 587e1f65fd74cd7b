/* Statements that come up while calls are taken, kept in their order for the end of the batch. */
#ifndef CT_DEFERRED_H
#define CT_DEFERRED_H

#include "store_names.h"
#include "value.h"

#include <stdbool.h>
#include <stddef.h>

struct ct_store;

/* A statement with its integers, then its text where it has one. Three names stand for more than their
 * statement: insert_kernel (process_id, number; the mangled name) sees to the name's own row,
 * free_allocation (CT_FREE_VALUES; the kind) and supersede_late_allocation are allocations.h's. */
void ct_store_defer(struct ct_store *store, enum ct_statement statement, size_t values, const int64_t *value,
                    const char *text);

/* Returns whether the batch has as many details as it may: what is taken next belongs to another one. */
bool ct_store_is_full(const struct ct_store *store);

/* The store's own: hands over what was taken; runs that, 0 or -1; forgets all; ends. */
void ct_deferred_hand_over(struct ct_store *store);
int ct_deferred_run(struct ct_store *store);
void ct_deferred_clear(struct ct_store *store);
void ct_deferred_finish(struct ct_store *store);

#endif
