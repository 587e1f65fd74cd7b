/* Builds SQLite pages from rows of integers. The pages are leaves of a table with an INTEGER PRIMARY KEY, in
 * the order of the keys (https://www.sqlite.org/fileformat2.html, 1.6 and 2.1). */
#ifndef CT_PAGE_BUILDER_H
#define CT_PAGE_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CT_LEAF_BYTES = 4096,
    CT_LEAF_ROWS_MAX = (CT_LEAF_BYTES - 8) / (2 + 4), /* the same limit as SQLite's */
};

/* A page, and the range of rows that it contains. */
struct ct_leaf {
    int64_t last_key;
    size_t from, to; /* rows */
    uint8_t page[CT_LEAF_BYTES];
};

/* The leaves of one transaction. */
struct ct_page_builder {
    struct ct_leaf *leaf;
    size_t count, room;
};

/* Adds leaves with rows of `columns` values, at most CT_ROW_COLUMNS_MAX. CT_NULL means NULL. The first value
 * is the key, which is the table's last column. Keys are positive and ascend. Returns false if out of memory.
 */
bool ct_page_builder_add(struct ct_page_builder *builder, const int64_t *value, unsigned columns,
                         size_t rows);
void ct_page_builder_finish(struct ct_page_builder *builder);

/* Returns the number of rows in a leaf of a table, and sets *last_key to the key of the last row. Returns 0
 * if the page is not a leaf of a table with an INTEGER PRIMARY KEY. */
unsigned ct_leaf_rows(const uint8_t page[CT_LEAF_BYTES], int64_t *last_key);

#endif
