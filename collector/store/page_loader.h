/* Loads rows into a table as whole pages. Inserting the rows one by one would take SQLite ten times as long,
 * because it would have to find the place for each row.
 *
 * The loader lays out pages of rows (page_builder.h). For each page, it inserts a placeholder row with the
 * key of the page's last row. The placeholder is long enough to need a page of its own, so SQLite allocates,
 * links and writes that page, in the same transaction as everything else. Before the commit, the loader
 * overwrites the page in SQLite's cache with the rows (page_cache.h). After the commit, SQLite re-reads the
 * page. Readers of the file see an ordinary table. */
#ifndef CT_PAGE_LOADER_H
#define CT_PAGE_LOADER_H

#include "store_names.h"

#include <stddef.h>
#include <stdint.h>

struct ct_store;

/* A table that can be loaded. It must have no index, and its last column must be its INTEGER PRIMARY KEY. Its
 * statements are in schema/store.sql. */
struct ct_loaded_table {
    const char *name, *columns;
    enum ct_statement fill, unfill, newest;
};
extern const struct ct_loaded_table ct_loaded_calls, ct_loaded_launches, ct_loaded_transfers,
    ct_loaded_call_subjects, ct_loaded_gpu_runs;

/* Checks whether pages can be loaded through a newly opened connection. */
void ct_page_loader_connect(struct ct_store *store);
/* Loads rows, whose keys must be in ascending order. Sets *loaded to the number of rows that were loaded, or
 * to 0 if there are too few rows or the table cannot be loaded. Sets *by_row to how many of the following
 * rows the caller must insert one by one before the next call. Returns 0 or -1. */
int ct_page_loader_add(struct ct_store *store, const struct ct_loaded_table *table, const int64_t *value,
                       unsigned columns, size_t rows, size_t *loaded, size_t *by_row);
/* Fills the pages with the rows. Until the commit or rollback, the loaded tables must not be read or written.
 * Returns 0 or -1. */
int ct_page_loader_replace(struct ct_store *store);
/* Call after the commit or rollback. */
void ct_page_loader_end(struct ct_store *store);
/* Returns the reason for storing rows one by one, as a sentence without a full stop, or "" if rows are stored
 * as pages. */
const char *ct_page_loader_why_not(const struct ct_store *store);
void ct_page_loader_finish(struct ct_store *store);

#endif
