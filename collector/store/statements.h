/* Prepares, binds and runs the statements of schema/store.sql by name. Functions that run statements return 0
 * or -1, not SQLite's codes. */
#ifndef CT_STATEMENTS_H
#define CT_STATEMENTS_H

#include "store_names.h"
#include "value.h"

#include <stddef.h>

struct ct_store;
struct sqlite3;
struct sqlite3_stmt;

/* Prepares all statements. Returns an SQLite code. On failure, no statement stays prepared. */
int ct_statements_prepare(struct sqlite3 *connection, struct sqlite3_stmt *statement[CT_SQL_COUNT]);
void ct_statements_finalize(struct sqlite3_stmt *statement[CT_SQL_COUNT]);

/* Records SQLite's error message. Always returns -1. */
int ct_store_failed(struct ct_store *store);
/* Records the error "out of memory". Always returns -1. */
int ct_store_no_memory(struct ct_store *store);
/* Waits for the commit in progress, if there is one. Returns -1 if it failed, or if an earlier commit failed
 * and was not rolled back. */
int ct_store_commit_wait(struct ct_store *store);
/* Waits for the commit in progress, then begins a transaction for the batch being made, unless it already has
 * one. Call this before any access to the database other than through the functions below. Does nothing in
 * the committer, which already has a transaction. Returns 0, or aborts the batch and returns -1. */
int ct_store_need_transaction(struct ct_store *store);
/* Binds integers to a statement, with CT_NULL as NULL, and returns the statement. */
struct sqlite3_stmt *ct_store_bind(struct ct_store *store, enum ct_statement which, size_t values,
                                   const int64_t *value);
/* Calls sqlite3_step() in a way that lets ct_store_failed() report the system's reason for a failure. */
int ct_store_step(struct sqlite3_stmt *statement);
/* Runs a statement. Stores the first column of the first row, if there is one, in *result. `result` may be
 * NULL. Returns 0 or -1. */
int ct_store_run(struct ct_store *store, struct sqlite3_stmt *statement, int64_t *result);
/* Runs a named statement with integers, followed by strings, as its parameters. Returns the same as
 * ct_store_run(). */
int ct_store_ask(struct ct_store *store, enum ct_statement which, size_t values, const int64_t *value,
                 size_t texts, const char *const *text, int64_t *result);
/* Expands a list of strings to two arguments, the number of strings and an array. */
/* clang-format off */
#define CT_TEXTS(...) sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *), (const char *const[]){ __VA_ARGS__ }
/* clang-format on */
/* Runs a named statement with integer parameters and no result. Returns 0 or -1. */
int ct_store_do(struct ct_store *store, enum ct_statement which, size_t values, const int64_t *value);

#endif
