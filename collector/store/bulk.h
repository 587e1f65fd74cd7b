/* Collects rows of the tables that have a row for many of the calls. The rows are kept while a batch is made,
 * and written together at its end. */
#ifndef CT_BULK_H
#define CT_BULK_H

#include "store_names.h"

#include <stdbool.h>
#include <stdint.h>

struct ct_store;
struct sqlite3;

/* Returns a new row with its key set. A row of details counts as effort. The caller sets the other values,
 * listed in `enum ct_bulk`. Never returns NULL: if out of memory, the row is discarded and the commit fails.
 * Valid until the next call. */
int64_t *ct_bulk_add(struct ct_store *store, enum ct_bulk table, int64_t key);
/* Returns whether the rows that arrived in order include this key. */
bool ct_bulk_has(const struct ct_store *store, enum ct_bulk table, int64_t key);

/* For the store only. Register the tables of rows with a connection (returns an SQLite code). Hand over the
 * collected rows to the commit. Write these rows as the last step before the commit (returns 0 or -1).
 * Discard all rows. Set up and tear down. */
int ct_bulk_register(struct ct_store *store, struct sqlite3 *connection);
void ct_bulk_hand_over(struct ct_store *store);
int ct_bulk_write(struct ct_store *store);
void ct_bulk_clear(struct ct_store *store);
void ct_bulk_init(struct ct_store *store);
void ct_bulk_finish(struct ct_store *store);

#endif
