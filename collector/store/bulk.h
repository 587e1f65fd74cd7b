/* Rows of the tables that get one for a good part of all calls: kept while a batch is taken, and written at
 * its end, many at a time. */
#ifndef CT_BULK_H
#define CT_BULK_H

#include "store_names.h"

#include <stdbool.h>
#include <stdint.h>

struct ct_store;
struct sqlite3;

/* A new row, with its key, for the caller to write the other values that `enum ct_bulk` names; never NULL:
 * without memory it is nobody's, and there will be no commit. Valid until the next one. */
int64_t *ct_bulk_add(struct ct_store *store, enum ct_bulk table, int64_t key);
/* Returns whether a row of that key is among those that came in order. */
bool ct_bulk_has(const struct ct_store *store, enum ct_bulk table, int64_t key);

/* The store's own: registers the tables of rows with a connection, an SQLite code; hands over
 * what was taken; writes that, as the last thing before the commit, 0 or -1; forgets all; begins and ends. */
int ct_bulk_register(struct ct_store *store, struct sqlite3 *connection);
void ct_bulk_hand_over(struct ct_store *store);
int ct_bulk_write(struct ct_store *store);
void ct_bulk_clear(struct ct_store *store);
void ct_bulk_init(struct ct_store *store);
void ct_bulk_finish(struct ct_store *store);

#endif
