/* Rows that C makes, as a table that SQLite reads: `INSERT … SELECT` from one costs half of a bind and step
 * for each row. */
#ifndef CT_ROW_TABLE_H
#define CT_ROW_TABLE_H

#include "value.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

enum { CT_ROW_COLUMNS_MAX = 4 };

/* The columns are called c1, c2, …; one statement reads the table at a time, once, from front to back. */
struct ct_row_table {
    /* The next row into `value`; false at the end. */
    bool (*next)(struct ct_row_table *table);
    int64_t value[CT_ROW_COLUMNS_MAX]; /* CT_NULL for NULL */
};

/* Makes `table`, which must outlive the connection, the table `name` of the connection; SQLite's code. */
int ct_row_table_register(sqlite3 *connection, const char *name, struct ct_row_table *table);

/* Rows of a batch, for a table: bulk.c. */
struct ct_bulk_rows {
    int64_t *value;
    size_t count, room; /* rows */
};

struct ct_bulk_batch {
    struct ct_bulk_rows ordered, /* each key greater than the one before */
        stray;                   /* the rest, as it came */
};

struct ct_bulk_table {
    struct ct_row_table table; /* first: what `INSERT … SELECT` reads */
    unsigned columns;
    struct ct_bulk_batch taken, committing; /* by the batch that is made; of the one that is committed */
    const struct ct_bulk_rows *reading;
    size_t read, read_to;
};

#endif
