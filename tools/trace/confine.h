/* Limits what a query may do: it reads the trace and does nothing else, whoever wrote the query or the file.
 * A trace may come from another person, so its schema is trusted no more than its rows. Called where a trace
 * is opened (series.c, trace_file.c). */
#ifndef CT_CONFINE_H
#define CT_CONFINE_H

#include <sqlite3.h>

/* Nothing but reading from here on, whatever a query or the schema of the file asks for. */
void ct_trace_confine(sqlite3 *connection);
/* Queries that take long fail from here on. For questions that have one row as their answer: in a file of
 * somebody else's making that row may be a view without end. */
void ct_trace_hurry(sqlite3 *connection);

#endif
