/* Limits queries to reading the trace, regardless of who wrote the query or the file. A trace may come from
 * someone else, so its schema is trusted no more than its rows. Called where a trace is opened (series.c,
 * trace_file.c). */
#ifndef CT_CONFINE_H
#define CT_CONFINE_H

#include <sqlite3.h>

/* Allows only reading from now on, regardless of what a query or the file's schema requests. */
void ct_trace_confine(sqlite3 *connection);
/* Makes long queries fail from now on. Used for queries that return a single row, because in another user's
 * file, that row may come from an endless view. */
void ct_trace_hurry(sqlite3 *connection);

#endif
