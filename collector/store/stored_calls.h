/* Calls into the table `call`: `INSERT … SELECT` from a table that asks for one row after the other. A row's
 * call_id is decided before the row is taken, since its details will name it. */
#ifndef CT_STORED_CALLS_H
#define CT_STORED_CALLS_H

#include "value.h"

struct ct_store;
struct sqlite3;

/* Stores what `next` yields until it returns false, at most `rows_max` rows; *rows says how many. It is not
 * asked for another where the batch has as many as it may. `next` calls ct_store_place() once it knows when
 * its row's call returned, and then what stores the row's details. 0 or -1. */
int ct_store_calls(struct ct_store *store, bool (*next)(void *data, struct ct_row *row), void *data,
                   uint64_t rows_max, uint64_t *rows);
void ct_store_place(struct ct_store *store, uint64_t end_ns);
/* The call_id of the row that was placed, */
uint64_t ct_store_call_id(const struct ct_store *store);
/* and whether later ones are stored already. */
bool ct_store_is_late(const struct ct_store *store);
/* Returns what all that was stored has cost, in rows of plain calls; these are not counted themselves. */
uint64_t ct_store_effort(const struct ct_store *store);
uint64_t ct_store_late_rows(const struct ct_store *store);

/* The store's own: begins and ends; registers the table with a connection, an SQLite code; forgets the late
 * rows of a batch, committed or not. */
void ct_stored_calls_init(struct ct_store *store);
void ct_stored_calls_finish(struct ct_store *store);
int ct_stored_calls_register(struct ct_store *store, struct sqlite3 *connection);
void ct_stored_calls_committed(struct ct_store *store);
void ct_stored_calls_clear(struct ct_store *store);

#endif
