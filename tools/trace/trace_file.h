/* Opens one file of a trace so that nothing can be written, reads single values from it, and reports
 * errors. */
#ifndef CT_TRACE_FILE_H
#define CT_TRACE_FILE_H

#include "trace_files.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens a file read-only and confined. Returns an SQLite code. The caller closes the connection either
 * way. */
int ct_trace_file_open(const char *path, sqlite3 **connection);
/* Returns why ct_trace_file_open() failed. The text is valid as long as the connection. */
const char *ct_trace_file_problem(const char *path, sqlite3 *connection);
/* Returns the file's URI for SQLite, which the caller frees with sqlite3_free(). Returns NULL if memory is
 * short. */
char *ct_trace_file_uri(const char *path);

/* Facts about a file, found without writing to it. */
struct ct_trace_facts {
    int64_t application;          /* PRAGMA application_id: CT_APPLICATION_ID for a trace */
    int64_t schema;               /* PRAGMA user_version */
    int64_t objects;              /* number of tables, views and other objects in it */
    char boot_id[64];             /* id of the boot in which the trace was made; empty for other files */
    char series[CT_SERIES_BYTES]; /* the trace's series; empty: none */
};
/* Returns false if the file is not a database that can be read. `problem` gets the reason, unless it is
 * NULL. */
bool ct_trace_inspect(const char *path, struct ct_trace_facts *facts, char *problem, size_t bytes);

/* Returns the number in the first row of a query, or `otherwise` if there is none or the query fails. `bound`
 * is the value of its parameter, if it has one. */
int64_t ct_ask_number(sqlite3 *connection, const char *sql, int64_t bound, int64_t otherwise);
/* Gets the text in the first row of a query, or "" if there is none. */
void ct_ask_text(sqlite3 *connection, const char *sql, int64_t bound, char *text, size_t bytes);

/* Binds a parameter, if the query has it. */
void ct_bind_number(sqlite3_stmt *statement, const char *name, int64_t value);

/* Returns the reason for an error: the connection's message, or the text for `rc` if the connection has no
 * error. Valid until the connection's next use. */
const char *ct_sqlite_why(sqlite3 *connection, int rc);
/* Writes the reason why one of our own queries failed with `rc`. Returns true if an older version wrote the
 * trace, which is then the reason. */
bool ct_trace_why(sqlite3 *connection, int rc, char *why, size_t bytes);

#endif
