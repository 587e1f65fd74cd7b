#include "row_table.h"

struct connected {
    sqlite3_vtab base;
    struct ct_row_table *table;
};
struct cursor {
    sqlite3_vtab_cursor base;
    struct ct_row_table *table;
    bool end;
};

static int table_connect(sqlite3 *connection, void *client, int argc, const char *const *argv,
                         sqlite3_vtab **table, char **error)
{
    (void)argc, (void)argv, (void)error;
    struct connected *connected = sqlite3_malloc(sizeof(*connected));
    if (!connected)
        return SQLITE_NOMEM;
    *connected = (struct connected){ .table = client };
    *table = &connected->base;
    return sqlite3_declare_vtab(connection, "CREATE TABLE x (c1, c2, c3, c4, c5, c6, c7)");
}

static int table_disconnect(sqlite3_vtab *table)
{
    sqlite3_free(table);
    return SQLITE_OK;
}

static int table_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
    (void)table;
    info->estimatedCost = 1e6;
    info->estimatedRows = 1000000;
    return SQLITE_OK;
}

static int cursor_open(sqlite3_vtab *table, sqlite3_vtab_cursor **result)
{
    struct cursor *cursor = sqlite3_malloc(sizeof(*cursor));
    if (!cursor)
        return SQLITE_NOMEM;
    *cursor = (struct cursor){ .table = ((struct connected *)table)->table };
    *result = &cursor->base;
    return SQLITE_OK;
}

static int cursor_close(sqlite3_vtab_cursor *cursor)
{
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int cursor_next(sqlite3_vtab_cursor *base)
{
    struct cursor *cursor = (struct cursor *)base;
    cursor->end = !cursor->table->next(cursor->table);
    return SQLITE_OK;
}

static int cursor_filter(sqlite3_vtab_cursor *base, int index, const char *name, int argc,
                         sqlite3_value **argv)
{
    (void)index, (void)name, (void)argc, (void)argv;
    return cursor_next(base);
}

static int cursor_eof(sqlite3_vtab_cursor *base)
{
    return ((struct cursor *)base)->end;
}

static int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const int64_t value = ((struct cursor *)base)->table->value[column];
    if (value != CT_NULL)
        sqlite3_result_int64(context, value);
    return SQLITE_OK;
}

static int cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    *rowid = ((struct cursor *)base)->table->value[0];
    return SQLITE_OK;
}

static const sqlite3_module row_table_module = {
    .xConnect = table_connect, /* no xCreate: the table exists under the module's name */
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

int ct_row_table_register(sqlite3 *connection, const char *name, struct ct_row_table *table)
{
    return sqlite3_create_module(connection, name, &row_table_module, table);
}
