#include "computed_table.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { ARGUMENTS = 4 };

/* The result of a computation. */
struct kept {
    struct kept *next;
    const struct ct_computation *computation;
    pthread_mutex_t lock; /* for the other fields, held while computing */
    bool is_computed;
    struct ct_scope scope;
    void *result;
};
struct ct_computed_cache {
    pthread_mutex_t lock; /* for the list */
    struct kept *kept;
};

/* What the connection knows of a function. */
struct function {
    const struct ct_computed_table *table;
    struct ct_computed_cache *cache;
    sqlite3 *connection;
    int columns;
};
struct table {
    sqlite3_vtab base;
    const struct function *function;
};
struct cursor {
    sqlite3_vtab_cursor base;
    const char *row; /* the first one */
    size_t count, at;
    void *own; /* the result, if it is not in a cache */
};

/* ---- the cache ---- */

struct ct_computed_cache *ct_computed_cache_new(void)
{
    struct ct_computed_cache *cache = calloc(1, sizeof(*cache));
    if (cache)
        pthread_mutex_init(&cache->lock, NULL);
    return cache;
}

void ct_computed_cache_free(struct ct_computed_cache *cache)
{
    if (!cache)
        return;
    while (cache->kept) {
        struct kept *kept = cache->kept;
        cache->kept = kept->next;
        kept->computation->release(kept->result);
        pthread_mutex_destroy(&kept->lock);
        free(kept);
    }
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

/* Returns the computation's place in the cache, or NULL if out of memory. */
static struct kept *place_of(struct ct_computed_cache *cache, const struct ct_computation *computation)
{
    pthread_mutex_lock(&cache->lock);
    struct kept *kept = cache->kept;
    while (kept && kept->computation != computation)
        kept = kept->next;
    if (!kept && (kept = calloc(1, sizeof(*kept))) != NULL) {
        pthread_mutex_init(&kept->lock, NULL);
        kept->computation = computation;
        kept->next = cache->kept;
        cache->kept = kept;
    }
    pthread_mutex_unlock(&cache->lock);
    return kept;
}

/* Sets *result to the cached result, or to NULL if the cache has one for another scope. Returns an SQLite
 * code. */
static int find_cached(const struct function *function, const struct ct_scope *scope, void **result)
{
    struct kept *kept = place_of(function->cache, function->table->computation);
    int rc = SQLITE_OK;
    *result = NULL;
    if (!kept)
        return SQLITE_NOMEM;
    pthread_mutex_lock(&kept->lock);
    if (!kept->is_computed) {
        rc = kept->computation->compute(function->connection, scope, &kept->result);
        kept->is_computed = rc == SQLITE_OK;
        kept->scope = *scope;
    }
    if (!kept->is_computed) {
        kept->computation->release(kept->result);
        kept->result = NULL;
    } else if (kept->scope.from_ns == scope->from_ns && kept->scope.to_ns == scope->to_ns &&
               kept->scope.pid == scope->pid && kept->scope.now_ns == scope->now_ns) {
        *result = kept->result;
    }
    pthread_mutex_unlock(&kept->lock);
    return rc;
}

/* ---- the tables ---- */

static const struct function *function_of(const sqlite3_vtab_cursor *cursor)
{
    return ((const struct table *)cursor->pVtab)->function;
}

/* The arguments are hidden columns. */
static int declare(sqlite3 *connection, const struct ct_computed_table *table)
{
    sqlite3_str *text = sqlite3_str_new(connection);
    sqlite3_str_appendall(text, "CREATE TABLE x (");
    for (const struct ct_computed_column *column = table->columns; column->name; column++)
        sqlite3_str_appendf(text, "%s, ", column->name);
    sqlite3_str_appendall(
        text, "window_from_ns HIDDEN, window_to_ns HIDDEN, only_pid HIDDEN, given_now_ns HIDDEN)");
    char *sql = sqlite3_str_finish(text);
    const int rc = sql ? sqlite3_declare_vtab(connection, sql) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return rc;
}

static bool has_view(sqlite3 *connection, const char *view)
{
    sqlite3_stmt *statement = NULL;
    char *sql = sqlite3_mprintf("SELECT 1 FROM \"%w\"", view);
    const bool found = sql && sqlite3_prepare_v2(connection, sql, -1, &statement, NULL) == SQLITE_OK;
    sqlite3_finalize(statement);
    sqlite3_free(sql);
    return found;
}

static int table_connect(sqlite3 *connection, void *client, int argc, const char *const *argv,
                         sqlite3_vtab **table, char **error)
{
    (void)argc, (void)argv;
    const struct function *function = client;
    const char *view = function->table->computation->view;
    if (!has_view(connection, view)) {
        *error = sqlite3_mprintf("no such table: %s", view);
        return SQLITE_ERROR;
    }
    struct table *made = sqlite3_malloc(sizeof(*made));
    if (!made)
        return SQLITE_NOMEM;
    *made = (struct table){ .function = function };
    *table = &made->base;
    sqlite3_vtab_config(connection, SQLITE_VTAB_DIRECTONLY);
    return declare(connection, made->function->table);
}

static int table_disconnect(sqlite3_vtab *table)
{
    sqlite3_free(table);
    return SQLITE_OK;
}

/* Bit N of the index's number is set if argument N is given. */
static int table_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    const int columns = ((const struct table *)table)->function->columns;
    int place[ARGUMENTS], given = 0;
    memset(place, -1, sizeof(place));
    for (int i = 0; i < info->nConstraint; i++) {
        const int argument = info->aConstraint[i].iColumn - columns;
        if (argument < 0)
            continue;
        if (!info->aConstraint[i].usable || info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
            return SQLITE_CONSTRAINT;
        place[argument] = i;
    }
    for (int argument = 0; argument < ARGUMENTS; argument++) {
        if (place[argument] < 0)
            continue;
        info->aConstraintUsage[place[argument]].argvIndex = __builtin_popcount((unsigned)given) + 1;
        info->aConstraintUsage[place[argument]].omit = 1;
        given |= 1 << argument;
    }
    info->idxNum = given;
    info->estimatedCost = 1e9;
    info->estimatedRows = 1000;
    return SQLITE_OK;
}

static int cursor_open(sqlite3_vtab *table, sqlite3_vtab_cursor **result)
{
    (void)table;
    struct cursor *cursor = sqlite3_malloc(sizeof(*cursor));
    if (!cursor)
        return SQLITE_NOMEM;
    *cursor = (struct cursor){ 0 };
    *result = &cursor->base;
    return SQLITE_OK;
}

static void release(struct cursor *cursor)
{
    function_of(&cursor->base)->table->computation->release(cursor->own);
    cursor->own = NULL;
    cursor->count = 0;
}

static int cursor_close(sqlite3_vtab_cursor *base)
{
    release((struct cursor *)base);
    sqlite3_free(base);
    return SQLITE_OK;
}

static int find_rows(struct cursor *cursor, const struct function *function, const struct ct_scope *scope)
{
    const struct ct_computed_table *table = function->table;
    void *result = NULL;
    release(cursor);
    cursor->at = 0;
    int rc = function->cache ? find_cached(function, scope, &result) : SQLITE_OK;
    if (rc == SQLITE_OK && !result) {
        rc = table->computation->compute(function->connection, scope, &cursor->own);
        result = cursor->own;
    }
    if (rc != SQLITE_OK)
        return rc;
    memcpy(&cursor->row, (const char *)result + table->rows_at, sizeof(cursor->row));
    memcpy(&cursor->count, (const char *)result + table->count_at, sizeof(cursor->count));
    return SQLITE_OK;
}

static int cursor_filter(sqlite3_vtab_cursor *base, int given, const char *name, int argc,
                         sqlite3_value **argv)
{
    (void)name, (void)argc;
    struct cursor *cursor = (struct cursor *)base;
    const struct function *function = function_of(base);
    struct ct_scope scope = ct_scope_all();
    int64_t *const arguments[ARGUMENTS] = { &scope.from_ns, &scope.to_ns, &scope.pid, &scope.now_ns };
    for (int i = 0; i < ARGUMENTS; i++) {
        if (!(given & 1 << i))
            continue;
        if (sqlite3_value_type(*argv) != SQLITE_NULL)
            *arguments[i] = sqlite3_value_int64(*argv);
        argv++;
    }
    return find_rows(cursor, function, &scope);
}

static int cursor_next(sqlite3_vtab_cursor *base)
{
    ((struct cursor *)base)->at++;
    return SQLITE_OK;
}

static int cursor_eof(sqlite3_vtab_cursor *base)
{
    const struct cursor *cursor = (struct cursor *)base;
    return cursor->at >= cursor->count;
}

static int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int number)
{
    const struct cursor *cursor = (struct cursor *)base;
    const struct function *function = function_of(base);
    if (number >= function->columns)
        return SQLITE_OK;
    const struct ct_computed_column *column = &function->table->columns[number];
    const char *at = cursor->row + cursor->at * function->table->row_bytes + column->offset;
    if (column->type == CT_COMPUTED_TEXT)
        sqlite3_result_text(context, *(const char *const *)at, -1, SQLITE_TRANSIENT);
    else if (column->type == CT_COMPUTED_REAL)
        sqlite3_result_double(context, *(const double *)at);
    else if (*(const int64_t *)at != CT_COMPUTED_NULL)
        sqlite3_result_int64(context, *(const int64_t *)at);
    return SQLITE_OK;
}

static int cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    *rowid = (sqlite3_int64)((struct cursor *)base)->at;
    return SQLITE_OK;
}

static const sqlite3_module module = {
    .xConnect = table_connect, /* no xCreate: the function exists under the module's name */
    .xBestIndex = table_best_index,
    .xDisconnect = table_disconnect,
    .xOpen = cursor_open,
    .xClose = cursor_close,
    .xFilter = cursor_filter,
    .xNext = cursor_next,
    .xEof = cursor_eof,
    .xColumn = cursor_column,
    .xRowid = cursor_rowid,
};

int ct_computed_add(sqlite3 *connection, const struct ct_computed_table *table,
                    struct ct_computed_cache *cache)
{
    struct function *function = sqlite3_malloc(sizeof(*function));
    if (!function)
        return SQLITE_NOMEM;
    *function = (struct function){ .table = table, .cache = cache, .connection = connection };
    while (table->columns[function->columns].name)
        function->columns++;
    return sqlite3_create_module_v2(connection, table->name, &module, function, sqlite3_free);
}
