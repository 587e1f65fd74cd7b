#include "statements.h"

#include "database_problem.h"
#include "schema_sql.h"
#include "store_state.h"

#include <errno.h>

static const char *const statement_sql[CT_SQL_COUNT] = {
#define ROW(name) ct_sql_store_##name,
    CT_STORE_PARTS(ROW)
#undef ROW
};

void ct_statements_finalize(sqlite3_stmt *statement[CT_SQL_COUNT])
{
    for (int i = 0; i < CT_SQL_COUNT; i++) {
        sqlite3_finalize(statement[i]);
        statement[i] = NULL;
    }
}

int ct_statements_prepare(sqlite3 *connection, sqlite3_stmt *statement[CT_SQL_COUNT])
{
    int rc = SQLITE_OK;
    for (int i = 0; i < CT_SQL_COUNT; i++) {
        statement[i] = NULL;
        if (rc == SQLITE_OK)
            rc = sqlite3_prepare_v3(connection, statement_sql[i], -1, SQLITE_PREPARE_PERSISTENT,
                                    &statement[i], NULL);
    }
    if (rc != SQLITE_OK)
        ct_statements_finalize(statement);
    return rc;
}

int ct_store_failed(struct ct_store *store)
{
    return ct_message(store->error, "cannot write database '%s': %s", store->database.path,
                      ct_database_problem(store->database.connection));
}

int ct_store_no_memory(struct ct_store *store)
{
    return ct_message(store->error, "out of memory");
}

sqlite3_stmt *ct_store_bind(struct ct_store *store, enum ct_statement which, size_t values,
                            const int64_t *value)
{
    sqlite3_stmt *statement = store->statement[which];
    for (size_t i = 0; i < values; i++) {
        if (value[i] == CT_NULL)
            sqlite3_bind_null(statement, (int)i + 1);
        else
            sqlite3_bind_int64(statement, (int)i + 1, value[i]);
    }
    return statement;
}

int ct_store_step(sqlite3_stmt *statement)
{
    errno = 0;
    return sqlite3_step(statement);
}

static int run(struct ct_store *store, sqlite3_stmt *statement, int64_t *result)
{
    int rc = ct_store_step(statement);
    if (rc == SQLITE_ROW && result)
        *result = sqlite3_column_int64(statement, 0);
    while (rc == SQLITE_ROW)
        rc = sqlite3_step(statement);
    const int error = rc == SQLITE_DONE ? 0 : ct_store_failed(store);
    sqlite3_reset(statement);
    return error;
}

int ct_store_commit_wait(struct ct_store *store)
{
    if (store->is_committing)
        store->has_failed = ct_task_wait(store->committer) != 0;
    store->is_committing = false;
    return store->has_failed ? -1 : 0;
}

int ct_store_need_transaction(struct ct_store *store)
{
    if (ct_task_is_own(store->committer) || !store->begin_is_due)
        return 0;
    const bool was_committing = store->is_committing;
    if (store->broken_off || ct_store_commit_wait(store) != 0)
        return -1;
    /* Call on_committed() before BEGIN, which may wait for another process's lock. */
    if (was_committing && store->on_committed)
        store->on_committed(store->on_committed_data);
    store->broken_off = run(store, store->statement[CT_SQL_begin], NULL) != 0;
    store->begin_is_due = store->broken_off;
    return store->broken_off ? -1 : 0;
}

int ct_store_run(struct ct_store *store, sqlite3_stmt *statement, int64_t *result)
{
    return ct_store_need_transaction(store) != 0 ? -1 : run(store, statement, result);
}

int ct_store_ask(struct ct_store *store, enum ct_statement which, size_t values, const int64_t *value,
                 size_t texts, const char *const *text, int64_t *result)
{
    if (ct_store_need_transaction(store) != 0)
        return -1;
    sqlite3_stmt *statement = ct_store_bind(store, which, values, value);
    for (size_t i = 0; i < texts; i++)
        sqlite3_bind_text(statement, (int)(values + i) + 1, text[i] ? text[i] : "", -1, SQLITE_STATIC);
    return run(store, statement, result);
}

int ct_store_do(struct ct_store *store, enum ct_statement which, size_t values, const int64_t *value)
{
    return ct_store_ask(store, which, values, value, 0, NULL, NULL);
}
