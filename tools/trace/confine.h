/* What a query may do: read the trace, and nothing else, whoever wrote the query or the file. A trace may
 * come from somebody else: what its schema says is no more trusted than what its rows say. */
#ifndef CT_CONFINE_H
#define CT_CONFINE_H

#include <sqlite3.h>

/* Nothing but reading from here on, whatever a query or the schema of the file asks for. */
void ct_trace_confine(sqlite3 *connection);
/* Queries that take long fail from here on: for looks at what a trace has one row of. In a file of somebody's
 * making it may be a view without end. */
void ct_trace_hurry(sqlite3 *connection);

#endif
