/* A trace, all its files as one, for a command: what is no trace is said. It asks no daemon. */
#ifndef CT_TRACE_OPEN_H
#define CT_TRACE_OPEN_H

#include "series.h"

/* Opens the trace at `path` read-only; NULL after reporting. `found` may be NULL; else it gets the files, for
 * more connections with ct_series_open(). */
sqlite3 *ct_trace_open(const char *path, struct ct_series *found);

#endif
