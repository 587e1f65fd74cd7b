/* Opens a trace for a command, with all its files as one. Reports files that are not a trace. Does not query
 * a daemon. */
#ifndef CT_TRACE_OPEN_H
#define CT_TRACE_OPEN_H

#include "series.h"

/* Opens the trace at `path` read-only. Returns NULL after reporting an error. `found` gets the files, for
 * more connections with ct_series_open(), unless it is NULL. */
sqlite3 *ct_trace_open(const char *path, struct ct_series *found);

#endif
