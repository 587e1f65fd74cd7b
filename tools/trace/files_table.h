/* Tables over all files of a trace. SQLite reads a `UNION ALL` of several files like a table only in simple
 * queries. In others, it copies all rows whenever a join reads the view, and each use of a view adds a
 * SELECT per file to the statement. These tables execute the query as a statement of its own instead. */
#ifndef CT_FILES_TABLE_H
#define CT_FILES_TABLE_H

#include <sqlite3.h>

/* Adds a table to the connection, which has the columns and rows of `select`, and replaces the table of that
 * name. If `key` is not NULL, this column is a number that is different in all rows, and only the rows in the
 * range of the key that a statement needs are read. SQLite creates no automatic index for such a table. Frees
 * `select`, which is SQLite's memory, or NULL if there was none. `key` outlives the connection. Returns an
 * SQLite code. */
int ct_files_table_add(sqlite3 *connection, const char *name, char *select, const char *key);

#endif
