/* Prints the rows of a query as text for human readers, or as csv, json or markdown for programs. */
#ifndef CT_PRINT_ROWS_H
#define CT_PRINT_ROWS_H

#include "options.h"

#include <sqlite3.h>
#include <stdio.h>

enum ct_format { CT_FORMAT_TEXT, CT_FORMAT_CSV, CT_FORMAT_JSON, CT_FORMAT_MARKDOWN, CT_FORMAT_COUNT };
/* `to_` points to an int. */
#define CT_OPTION_FORMAT(to_)                                                                                \
    {                                                                                                        \
        .name = "format", .value = "F",                                                                      \
        .help = "text (aligned columns), csv, json or markdown (default: text)", .to = to_,                  \
        .take = ct_take_choice, .choices = "text|csv|json|markdown"                                          \
    }

struct ct_printed {
    /* Set by the caller: called with the statement at its first row. May be NULL. */
    void (*on_first)(sqlite3_stmt *row, void *data);
    void *data;
    /* Set by ct_print_rows(): */
    int64_t rows;
};

/* Runs a prepared statement and prints its rows. Returns 0 or an SQLite error code. In text format, no line
 * is longer than `width` characters, unless `width` is 0. Long values are truncated first. If that is not
 * enough, columns are dropped and their names are listed. JSON output is an array followed by a newline. Sets
 * the number of rows, unless `printed` is NULL. */
int ct_print_rows(sqlite3_stmt *statement, enum ct_format format, int width, FILE *to,
                  struct ct_printed *printed);
/* Prints a statement's current row as members of a JSON object: "a":1,"b":"x". Prints `before` before the
 * first member, and a comma before each of the others. Omits members that are NULL. Returns the number of
 * members. */
int ct_print_json_members(sqlite3_stmt *row, const char *before, FILE *to);
/* Prints a statement's current row, whose columns are pairs of a name and a value, as a JSON object. Omits
 * pairs without a name. */
void ct_print_json_pairs(sqlite3_stmt *row, FILE *to);

#endif
