/* Limits a query to reading the trace, whoever wrote the query or the file. A trace may come from another
 * person, so its schema is trusted no more than its rows. Called where a trace is opened (series.c,
 * trace_file.c). */
#ifndef CT_CONFINE_H
#define CT_CONFINE_H

#include <sqlite3.h>

/* Allows only reading from now on, whatever a query or the schema of the file requests. */
void ct_trace_confine(sqlite3 *connection);
/* Lets long queries fail from now on. For queries with one row as their result, because in another user's
 * file that row may come from an endless view. */
void ct_trace_hurry(sqlite3 *connection);

#endif
