/* The feed: rows into a table as whole pages, which costs a tenth of what SQLite takes to find each row's
 * place.
 *
 * A page of rows is laid out here (leaf.h). SQLite is given one row in its place, with the key of the page's
 * last row and so long that it has a page of its own: so SQLite finds the page, links it, writes it and
 * answers for it, in the transaction of all else. Before the commit the page is filled with the rows where
 * SQLite has it in memory (page_cache.h), and SQLite reads it anew behind that. To whoever reads the file
 * there is nothing but a table. */
#ifndef CT_FEED_H
#define CT_FEED_H

#include "store_names.h"

#include <stddef.h>
#include <stdint.h>

struct ct_store;

/* A table that can be fed: it has no index, and its last column is its INTEGER PRIMARY KEY. The rest is
 * statements of its own: see schema/store.sql. */
struct ct_fed_table {
    const char *name, *columns;
    enum ct_statement fill, unfill, newest;
};
extern const struct ct_fed_table ct_feed_calls, ct_feed_launches, ct_feed_transfers, ct_feed_call_subjects;

/* Says whether a connection that was opened just now can be fed. */
void ct_feed_connect(struct ct_store *store);
/* Takes rows whose keys ascend, *fed of them, from the first on: none where they are few, or the table cannot
 * be fed. *by_row says how many of those behind have to go one by one before it is asked again. 0 or -1. */
int ct_feed_rows(struct ct_store *store, const struct ct_fed_table *table, const int64_t *value,
                 unsigned columns, size_t rows, size_t *fed, size_t *by_row);
/* Fills the pages with what was taken. From here on nothing may read or write these tables up to the commit
 * or rollback. 0 or -1. */
int ct_feed_replace(struct ct_store *store);
/* Behind either of these. */
void ct_feed_end(struct ct_store *store);
/* Returns why rows go one by one, a sentence without its end; "" where they do not. */
const char *ct_feed_why_not(const struct ct_store *store);
void ct_feed_finish(struct ct_store *store);

#endif
