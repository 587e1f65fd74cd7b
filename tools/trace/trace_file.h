/* One file of a trace: opened so that nothing can be written, asked for what it has one of, and why not. */
#ifndef CT_TRACE_FILE_H
#define CT_TRACE_FILE_H

#include "trace_files.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens it read-only and confined; an SQLite code. The connection is the caller's to close either way. */
int ct_trace_file_open(const char *path, sqlite3 **connection);
/* Why that failed; valid as long as the connection. */
const char *ct_trace_file_problem(const char *path, sqlite3 *connection);
/* Its name for SQLite, for a connection that takes URIs; sqlite3_free() it. NULL without memory. */
char *ct_trace_file_uri(const char *path);

/* Describes a file, found without writing to it. */
struct ct_trace_facts {
    int64_t application;          /* PRAGMA application_id: CT_APPLICATION_ID for a trace */
    int64_t schema;               /* PRAGMA user_version */
    int64_t objects;              /* tables and others in it */
    char boot_id[64];             /* of the machine's boot that a trace is from; empty for other files */
    char series[CT_SERIES_BYTES]; /* the trace's series; empty: none */
};
/* False when it is no database that can be read; `problem`, unless NULL, says why. */
bool ct_trace_inspect(const char *path, struct ct_trace_facts *facts, char *problem, size_t bytes);

/* The number that a query answers first; `otherwise` where it answers none, or fails. Its parameter, if it
 * has one, is `bound`. */
int64_t ct_ask_number(sqlite3 *connection, const char *sql, int64_t bound, int64_t otherwise);
/* The text that it answers first; "" where there is none. */
void ct_ask_text(sqlite3 *connection, const char *sql, int64_t bound, char *text, size_t bytes);

/* Binds a parameter, if the query has it. */
void ct_bind_number(sqlite3_stmt *statement, const char *name, int64_t value);

/* Says what went wrong: the message of the connection, or the text for `rc` where the connection has no
 * error. Valid until the connection's next use. */
const char *ct_sqlite_why(sqlite3 *connection, int rc);
/* Why a query that is ours failed with `rc`; true when that is the trace's age. */
bool ct_trace_why(sqlite3 *connection, int rc, char *why, size_t bytes);

#endif
