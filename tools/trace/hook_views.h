/* Creates temporary views that have the fields of calls in the `hook` layer as columns. */
#ifndef CT_HOOK_VIEWS_H
#define CT_HOOK_VIEWS_H

#include <sqlite3.h>

/* Creates a view hook_NAME for each hook that has calls in the trace. Does nothing if there are no such
 * hooks, or if their names cannot be read. The connection is unconfined (confine.h) only while the views are
 * being created.
 */
void ct_hook_views_make(sqlite3 *connection);

#endif
