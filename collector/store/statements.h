/* The statements of schema/store.sql, by name: prepared, bound and run. SQLite's codes end here. */
#ifndef CT_STATEMENTS_H
#define CT_STATEMENTS_H

#include "store_names.h"
#include "value.h"

#include <stddef.h>

struct ct_store;
struct sqlite3;
struct sqlite3_stmt;

/* Prepares all of them; an SQLite code, with nothing prepared unless it is SQLITE_OK. */
int ct_statements_prepare(struct sqlite3 *connection, struct sqlite3_stmt *statement[CT_SQL_COUNT]);
void ct_statements_finalize(struct sqlite3_stmt *statement[CT_SQL_COUNT]);

/* Notes what SQLite says is wrong; -1. */
int ct_store_failed(struct ct_store *store);
/* The same where memory is short. */
int ct_store_no_memory(struct ct_store *store);
/* Waits for the commit that was started, if there is one; -1 if it failed, or an earlier one did, and nothing
 * was rolled back. */
int ct_store_commit_wait(struct ct_store *store);
/* Begins the transaction of the batch that is made, unless it has one, behind the commit that was started: to
 * be called before whatever is not run by the functions below. The committer has one. 0, or -1: then the
 * batch is broken off. */
int ct_store_need_transaction(struct ct_store *store);
/* Binds integers to a statement, CT_NULL as NULL, and returns it. */
struct sqlite3_stmt *ct_store_bind(struct ct_store *store, enum ct_statement which, size_t values,
                                   const int64_t *value);
/* As sqlite3_step(), for ct_store_failed() to tell the system's reason. */
int ct_store_step(struct sqlite3_stmt *statement);
/* Runs a statement; its first row's first column, if it returns one, goes to *result, which may be NULL. 0 or
 * -1. */
int ct_store_run(struct ct_store *store, struct sqlite3_stmt *statement, int64_t *result);
/* The same of one by its name, with its integers and, behind them, its texts. */
int ct_store_ask(struct ct_store *store, enum ct_statement which, size_t values, const int64_t *value,
                 size_t texts, const char *const *text, int64_t *result);
/* A list of texts as two arguments. */
/* clang-format off */
#define CT_TEXTS(...) sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *), (const char *const[]){ __VA_ARGS__ }
/* clang-format on */
/* The same of one that has only integers, and no result. */
int ct_store_do(struct ct_store *store, enum ct_statement which, size_t values, const int64_t *value);

#endif
