/* A trace of several files (schema/trace_files.h), read as one. Called by query.c,
 * run.c, attach_process.c, held_daemon.c, client.c, sessions.c, top_sample.c, follow.c and doctor_session.c.
 */
#ifndef CT_SERIES_H
#define CT_SERIES_H

#include "trace_files.h"

#include <sqlite3.h>

/* The files to read, newest first. */
struct ct_series {
    uint32_t files;
    uint32_t left_out; /* older ones, beyond CT_SERIES_FILES_MAX */
    char path[CT_SERIES_FILES_MAX][4096 + 16];
};

/* The files that belong together with the one at `path`, from its number on; where that one is not there (any
 * more), those of the newest series. False when there is none. A file that is no trace comes alone. */
bool ct_series_find(const char *path, struct ct_series *found);
/* Returns whether the file at `served` belongs to the trace at `wanted`. Either file may be gone. */
bool ct_series_has(const char *wanted, const char *served);
/* Opens them read-only as one trace; an SQLite code. The connection is the caller's to close either way.
 * Files that a daemon has removed since they were found are not in it; those that it removes later stay
 * readable. */
int ct_series_open(const struct ct_series *series, sqlite3 **connection);
/* The number of files in such a connection. */
uint32_t ct_series_files(sqlite3 *connection);
/* The name that file `i`, 0 being the newest, has in such a connection. */
const char *ct_series_schema(uint32_t i);

#endif
