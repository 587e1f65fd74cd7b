/* Table-valued functions NAME(window_from_ns, window_to_ns, only_pid, given_now_ns), whose rows are computed
 * from the trace of their connection. All arguments may be NULL. Views cannot use such a function, but
 * queries can. */
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

/* What one or more tables take their rows from. */
struct ct_computation {
    const char *view; /* the view that compute() reads. Without it, as in a trace of an older version, queries
                       * that use the tables cannot be prepared */
    /* Computes for a part of the trace. Sets *result, even after an error. Returns an SQLite code. */
    int (*compute)(sqlite3 *connection, const struct ct_scope *scope, void **result);
    void (*release)(void *result); /* NULL is ignored */
};

struct ct_computed_table {
    const char *name;
    const struct ct_computation *computation;
    const struct ct_computed_column *columns; /* the last one has no name */
    size_t row_bytes;
    size_t rows_at, count_at; /* offsets in the result: of the address of the first row, and of the number of
                               * rows, a size_t */
};

/* A column with the member `field_` of the row struct `struct_`. */
#define CT_COMPUTED_COLUMN(name_, type_, struct_, field_)                                                    \
    {                                                                                                        \
        .name = name_, .type = CT_COMPUTED_##type_, .offset = offsetof(struct struct_, field_)               \
    }
/* Defines the table NAME of the computation `computation`, with the columns NAME_columns. Its rows are in the
 * members `rows_` and `count_` of the result, a struct `result_`. */
#define CT_COMPUTED_TABLE(name_, struct_, result_, rows_, count_)                                            \
    static const struct ct_computed_table name_ = { .name = #name_,                                          \
                                                    .computation = &computation,                             \
                                                    .columns = name_##_columns,                              \
                                                    .row_bytes = sizeof(struct struct_),                     \
                                                    .rows_at = offsetof(struct result_, rows_),              \
                                                    .count_at = offsetof(struct result_, count_) }

/* The results of computations. Connections that see the same state of the trace may share a cache, which must
 * outlive them. A result is kept for the scope that a computation is first used with. Threads that need the
 * same result wait while one of them computes it. */
struct ct_computed_cache;
/* Returns NULL if out of memory. */
struct ct_computed_cache *ct_computed_cache_new(void);
void ct_computed_cache_free(struct ct_computed_cache *cache);

/* Adds the function to the connection, or replaces it. Without a cache (NULL), each use of the function
 * computes its rows. The table must outlive the connection. Returns an SQLite code. */
int ct_computed_add(sqlite3 *connection, const struct ct_computed_table *table,
                    struct ct_computed_cache *cache);

#endif
