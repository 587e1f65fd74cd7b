/* Rows of integers as the pages that SQLite keeps them in: leaves of a table with an INTEGER PRIMARY KEY, in
 * the order of their keys (https://www.sqlite.org/fileformat2.html, 1.6 and 2.1). */
#ifndef CT_LEAF_H
#define CT_LEAF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CT_LEAF_BYTES = 4096,
    CT_LEAF_ROWS_MAX = (CT_LEAF_BYTES - 8) / (2 + 4), /* as SQLite reckons */
};

/* A page, and what it holds of the rows that it was made of. */
struct ct_leaf {
    int64_t last_key;
    size_t from, to; /* rows */
    uint8_t page[CT_LEAF_BYTES];
};

/* Leaves of one transaction. */
struct ct_leaves {
    struct ct_leaf *leaf;
    size_t count, room;
};

/* Adds leaves with rows of `columns` values (CT_ROW_COLUMNS_MAX at most), CT_NULL standing for NULL. The
 * first is the key, which is the table's last column: positive, and greater than that of the row before.
 * False without memory. */
bool ct_leaves_lay_out(struct ct_leaves *leaves, const int64_t *value, unsigned columns, size_t rows);
void ct_leaves_finish(struct ct_leaves *leaves);

/* Returns how many rows a leaf of such a table has, and the key of the last of them; 0 if it is none. */
unsigned ct_leaf_rows(const uint8_t page[CT_LEAF_BYTES], int64_t *last_key);

#endif
