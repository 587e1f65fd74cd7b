/* Temporary views of a trace with the fields of calls in the layer hook as columns. */
#ifndef CT_HOOK_VIEWS_H
#define CT_HOOK_VIEWS_H

#include <sqlite3.h>

/* Makes a view hook_NAME for each hook that has calls in the trace. Does nothing if the trace has none, or if
 * its names cannot be read. The connection is confined before and after. */
void ct_hook_views_make(sqlite3 *connection);

#endif
