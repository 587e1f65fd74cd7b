/* Rows of one database as a table of another: what two traces, or two moments of one, are compared by. */
#ifndef CT_COPY_TABLE_H
#define CT_COPY_TABLE_H

#include <sqlite3.h>

/* Makes the table `name` of `to` anew, with the columns and the rows of `from`. An SQLite code, and in
 * *blamed the connection that can say more. */
int ct_copy_table(sqlite3_stmt *from, sqlite3 *to, const char *name, sqlite3 **blamed);

#endif
