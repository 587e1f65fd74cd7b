/* Chooses the file of a run that must not add to an existing trace. Called by run.c. */
#ifndef CT_NEW_TRACE_H
#define CT_NEW_TRACE_H

#include <limits.h>
#include <stdbool.h>

/* Chooses a file for a new trace: `path` itself, or if that trace exists, the first of trace-2.db,
 * trace-3.db, … that does not. Creates the chosen file empty, so that no other run chooses it. Returns false
 * after reporting an error. */
bool ct_new_trace_take(const char *path, char chosen[PATH_MAX]);
/* Removes the chosen file if it is still empty, because no daemon could be started for it. */
void ct_new_trace_give_back(const char *chosen);

#endif
