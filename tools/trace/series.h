/* Reads a trace of several files (schema/trace_files.h) as one. Called by attach, control, doctor, export,
 * report, run, tail, top, held_daemon.c, sessions.c and files in this folder. */
#ifndef CT_SERIES_H
#define CT_SERIES_H

#include "trace_files.h"

#include <sqlite3.h>

/* The files of a trace that are read, newest first. */
struct ct_series {
    uint32_t files;
    uint32_t left_out; /* number of older files omitted because of CT_SERIES_FILES_MAX */
    char path[CT_SERIES_FILES_MAX][4096 + 16];
    struct ct_run {
        int64_t id;             /* the run that is read; 0: all runs */
        int64_t from_ns, to_ns; /* when the run's processes existed */
    } run;
};

/* Finds the files that belong to the same series as the file at `path`, starting with that file's number. If
 * the file does not exist (any more), finds the files of the newest series. If the file is not a trace, finds
 * only that file. Returns false if there are no files. */
bool ct_series_find(const char *path, struct ct_series *found);
/* Returns whether the file at `served` belongs to the trace at `wanted`. The files themselves may no longer
 * exist. */
bool ct_series_has(const char *wanted, const char *served);
/* Returns whether the file at `path` is one of the trace's files or of SQLite's logs of them, also under
 * another name, or would be one if it existed. */
bool ct_series_has_file(const struct ct_series *series, const char *path);
/* Opens the files read-only as one trace. Returns an SQLite code. The caller closes the connection even after
 * an error. Files that a daemon has already removed are omitted. Files that a daemon removes later stay
 * readable. */
int ct_series_open(const struct ct_series *series, sqlite3 **connection);
/* Restricts the connection, and all connections that ct_series_open() will open, to a run of the trace. Every
 * view then has only the rows of the run's processes, and rows without a process only if they are from the
 * same time. Returns an SQLite code, or SQLITE_NOTFOUND if the trace has no such run. */
int ct_series_choose_run(struct ct_series *series, sqlite3 *connection, int64_t run_id);
/* Returns whether the connection has temporary views, which read several files or a run. */
bool ct_series_has_views(sqlite3 *connection);
/* Returns the number of files that ct_series_open() has opened on the connection. */
uint32_t ct_series_files(sqlite3 *connection);
/* Prepares a query of file `i`. Each %s in it stands for the file's schema name. Returns an SQLite code. */
int ct_series_prepare(sqlite3 *connection, const char *sql, uint32_t i, sqlite3_stmt **statement);
/* Returns the schema name of file `i` on such a connection, 0 being the newest file. */
const char *ct_series_schema(uint32_t i);

#endif
