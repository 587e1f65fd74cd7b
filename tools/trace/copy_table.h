/* Copies rows of one database into a table of another, to compare two traces, or two moments of one. */
#ifndef CT_COPY_TABLE_H
#define CT_COPY_TABLE_H

#include <sqlite3.h>

/* Makes or replaces the table `name` of `to`, with the columns and the rows of `from`. Returns an SQLite
 * code. *blamed is the connection that has the error's message. */
int ct_copy_table(sqlite3_stmt *from, sqlite3 *to, const char *name, sqlite3 **blamed);

#endif
