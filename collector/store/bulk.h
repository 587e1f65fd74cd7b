/* Collects rows for the tables that get a row for every call or for many calls. Keeps the rows while a batch
 * is made, and writes them all when the batch ends. */
#ifndef CT_BULK_H
#define CT_BULK_H

#include "store_names.h"

#include <stdbool.h>
#include <stdint.h>

struct ct_store;
struct sqlite3;

/* Returns a new row with its key set, which is valid until the next call. The caller sets the other values,
 * which `enum ct_bulk` lists. Each row of details adds to the batch's effort, which is limited. Never returns
 * NULL: if out of memory, the row is discarded and the commit fails. */
int64_t *ct_bulk_add(struct ct_store *store, enum ct_bulk table, int64_t key);
/* Returns whether the key is among the rows that arrived in order. */
bool ct_bulk_has(const struct ct_store *store, enum ct_bulk table, int64_t key);

/* ---- only for the store ---- */

/* Registers the tables of rows with a connection. Returns an SQLite code. */
int ct_bulk_register(struct ct_store *store, struct sqlite3 *connection);
/* Passes the collected rows to the commit. */
void ct_bulk_hand_over(struct ct_store *store);
/* Writes the rows that were handed over, as the last step before the commit. Returns 0 or -1. */
int ct_bulk_write(struct ct_store *store);
/* Discards all rows. */
void ct_bulk_clear(struct ct_store *store);
void ct_bulk_init(struct ct_store *store);
void ct_bulk_finish(struct ct_store *store);

#endif
