/* Table-valued functions NAME(window_from_ns, window_to_ns, only_pid), whose rows are computed from the trace
 * of their connection. All arguments may be NULL. Views cannot use such a function, but queries can. */
#ifndef CT_COMPUTED_TABLE_H
#define CT_COMPUTED_TABLE_H

#include "scope.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

enum ct_computed_type {
    CT_COMPUTED_NUMBER, /* int64_t */
    CT_COMPUTED_REAL,   /* double */
    CT_COMPUTED_TEXT,   /* const char *; NULL for SQL's NULL */
};
/* The number that stands for SQL's NULL. */
#define CT_COMPUTED_NULL INT64_MIN

struct ct_computed_column {
    const char *name;
    enum ct_computed_type type;
    size_t offset; /* in a row */
};

struct ct_computed_rows {
    const void *row;
    size_t count;
    void *owner; /* what release() frees */
};

struct ct_computed_table {
    const char *name;
    const char *view; /* the view that compute() reads. Without it, as in a trace of an older version, queries
                       * that use the function cannot be prepared */
    const struct ct_computed_column *columns; /* the last one has no name */
    size_t row_bytes;
    /* Computes the rows for a part of the trace. Returns an SQLite code. */
    int (*compute)(sqlite3 *connection, const struct ct_scope *scope, void *client,
                   struct ct_computed_rows *rows);
    void (*release)(void *owner);
};

/* Adds the function to the connection, or replaces it. `client` is passed to compute(), and must outlive the
 * connection, like `table`. Returns an SQLite code. */
int ct_computed_add(sqlite3 *connection, const struct ct_computed_table *table, void *client);

#endif
