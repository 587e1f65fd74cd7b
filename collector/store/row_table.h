/* Presents rows from C code as a table in SQLite. `INSERT … SELECT` from such a table takes half as long as
 * binding and stepping a statement for each row. */
#ifndef CT_ROW_TABLE_H
#define CT_ROW_TABLE_H

#include "value.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

enum { CT_ROW_COLUMNS_MAX = 7 };

/* The columns are c1, c2, etc. Only one statement at a time may read the table, and reads each row once, from
 * start to end. */
struct ct_row_table {
    /* Reads the next row into `value`. Returns false at the end. */
    bool (*next)(struct ct_row_table *table);
    int64_t value[CT_ROW_COLUMNS_MAX]; /* CT_NULL for NULL */
};

/* Registers `table`, which must outlive the connection, under `name`. Returns an SQLite code. */
int ct_row_table_register(sqlite3 *connection, const char *name, struct ct_row_table *table);

/* A batch's rows for one table (bulk.c). */
struct ct_bulk_rows {
    int64_t *value;
    size_t count, room; /* rows */
};

struct ct_bulk_batch {
    struct ct_bulk_rows ordered, /* each key is greater than the previous one */
        stray;                   /* all other rows, in the order of arrival */
};

struct ct_bulk_table {
    struct ct_row_table table; /* must be first; read by `INSERT … SELECT` */
    unsigned columns;
    struct ct_bulk_batch taken, committing; /* rows of the batch being made, and of that being committed */
    const struct ct_bulk_rows *reading;
    size_t read, read_to;
};

#endif
