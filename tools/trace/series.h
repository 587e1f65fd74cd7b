/* A trace of several files (schema/trace_files.h), read as one. Called by attach, control, doctor, export,
 * report, run, tail, top, held_daemon.c, sessions.c and files of this folder. */
#ifndef CT_SERIES_H
#define CT_SERIES_H

#include "trace_files.h"

#include <sqlite3.h>

/* The files to read, newest first. */
struct ct_series {
    uint32_t files;
    uint32_t left_out; /* older files, beyond CT_SERIES_FILES_MAX */
    char path[CT_SERIES_FILES_MAX][4096 + 16];
};

/* Finds the files that belong together with the file at `path`, from its number on. If that file does not
 * exist (any more), finds those of the newest series. Returns false if there are none. A file that is not a
 * trace is the only one found. */
bool ct_series_find(const char *path, struct ct_series *found);
/* Returns whether the file at `served` belongs to the trace at `wanted`. Either file may no longer exist. */
bool ct_series_has(const char *wanted, const char *served);
/* Opens the files read-only as one trace. Returns an SQLite code. The caller closes the connection either
 * way. Files that a daemon has removed since they were found are missing. Files that it removes later stay
 * readable. */
int ct_series_open(const struct ct_series *series, sqlite3 **connection);
/* Returns the number of files in such a connection. */
uint32_t ct_series_files(sqlite3 *connection);
/* Returns the schema name of file `i` in such a connection, 0 being the newest. */
const char *ct_series_schema(uint32_t i);

#endif
