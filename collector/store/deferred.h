/* Collects the statements that result from taking calls, and runs them in the same order when the batch
 * ends. */
#ifndef CT_DEFERRED_H
#define CT_DEFERRED_H

#include "store_names.h"
#include "value.h"

#include <stdbool.h>
#include <stddef.h>

struct ct_store;

/* Defers a statement with its integers and its string, if any. For insert_kernel, the integers are process_id
 * and number, and the string is the mangled name, for which a row is created too. For free_allocation, there
 * are CT_FREE_VALUES integers. The strings of free_allocation, supersede_allocation and
 * supersede_late_allocation are kinds. These three call the functions in allocations.h. */
void ct_store_defer(struct ct_store *store, enum ct_statement statement, size_t values, const int64_t *value,
                    const char *text);

/* Returns whether the batch has reached its limit of details, so that the next call must wait for another
 * batch. */
bool ct_store_is_full(const struct ct_store *store);

/* ---- only for the store ---- */

/* Passes the deferred statements to the commit. */
void ct_deferred_hand_over(struct ct_store *store);
/* Runs the statements that were handed over. Returns 0 or -1. */
int ct_deferred_run(struct ct_store *store);
/* Discards all statements. */
void ct_deferred_clear(struct ct_store *store);
void ct_deferred_finish(struct ct_store *store);

#endif
