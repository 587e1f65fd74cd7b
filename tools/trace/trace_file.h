/* Opens a single file of a trace so that nothing can be written, reads single values from it, and reports
 * errors. */
#ifndef CT_TRACE_FILE_H
#define CT_TRACE_FILE_H

#include "trace_files.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns whether the path is another name (a hard link, or a mount of the single file) of a file that is
 * being written. The write-ahead log is next to the other name, so a reader of this name would miss the
 * newest calls, or read pages of different ages. Such a file is not opened. */
bool ct_trace_file_is_elsewhere(const char *path);
/* Opens a file read-only and confined (confine.h). Returns an SQLite code. The caller closes the connection
 * even after an error. */
int ct_trace_file_open(const char *path, sqlite3 **connection);
/* Returns why ct_trace_file_open() failed. The string is valid until the connection is closed, or until this
 * thread's next call. */
const char *ct_trace_file_problem(const char *path, sqlite3 *connection);
/* Returns the file's URI for SQLite, which the caller frees with sqlite3_free(), or NULL if out of memory. */
char *ct_trace_file_uri(const char *path);

/* Facts about a file, gathered without writing to it. */
struct ct_trace_facts {
    int64_t application;          /* PRAGMA application_id, which is CT_APPLICATION_ID for a trace */
    int64_t schema;               /* PRAGMA user_version */
    int64_t objects;              /* number of tables, views and other objects in the file */
    char boot_id[64];             /* ID of the boot during which the trace was written; empty for other
                                   * files */
    char series[CT_SERIES_BYTES]; /* the trace's series; empty: none */
};
/* Gathers facts about a file. If the file is not a readable database, returns false and, unless `problem` is
 * NULL, stores the reason in it. */
bool ct_trace_inspect(const char *path, struct ct_trace_facts *facts, char *problem, size_t bytes);

/* Returns the number in a query's first row, or `otherwise` if there is none or the query fails. `bound` is
 * bound to the query's parameter, if it has one. */
int64_t ct_ask_number(sqlite3 *connection, const char *sql, int64_t bound, int64_t otherwise);
/* Stores the string in a query's first row in `text`, or "" if there is no row. */
void ct_ask_text(sqlite3 *connection, const char *sql, int64_t bound, char *text, size_t bytes);

/* Binds a value to the named parameter, if the query has such a parameter. */
void ct_bind_number(sqlite3_stmt *statement, const char *name, int64_t value);

/* Returns the connection's error message, or SQLite's message for `rc` if the connection has no error. The
 * string is valid until the connection is next used. */
const char *ct_sqlite_why(sqlite3 *connection, int rc);
/* Writes the reason why one of our own queries failed with `rc`. Returns true if the reason is that an older
 * version wrote the trace. */
bool ct_trace_why(sqlite3 *connection, int rc, char *why, size_t bytes);

#endif
