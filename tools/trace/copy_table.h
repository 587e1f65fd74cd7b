/* Copies the rows of a query into a table in another database, to compare two traces, or two moments of one
 * trace. */
#ifndef CT_COPY_TABLE_H
#define CT_COPY_TABLE_H

#include <sqlite3.h>

/* Creates or replaces the table `name` in `to`, with the columns and rows of `from`. Returns an SQLite code.
 * On error, sets *blamed to the connection that has the error message. */
int ct_copy_table(sqlite3_stmt *from, sqlite3 *to, const char *name, sqlite3 **blamed);

#endif
