/* The merge as SQLite reads it: an eponymous virtual table with one cursor, the store's own merge. `INSERT …
 * SELECT` over it stores the calls. A row's call_id is decided here, before the row is taken, since its
 * details will name it. */
#include "store_private.h"

/* The table is eponymous and has one cursor: the store's own merge. */
struct merged_table {
    sqlite3_vtab base;
    struct ct_store *store;
};
struct merged_cursor {
    sqlite3_vtab_cursor base;
    struct ct_store *store;
    bool end;
};

static int table_connect(sqlite3 *connection, void *client, int argc, const char *const *argv,
                         sqlite3_vtab **table, char **error)
{
    (void)argc, (void)argv, (void)error;
    struct merged_table *merged = sqlite3_malloc(sizeof(*merged));
    if (!merged)
        return SQLITE_NOMEM;
    *merged = (struct merged_table){ .store = client };
    *table = &merged->base;
    return sqlite3_declare_vtab(connection, "CREATE TABLE x (end_ns, duration_ns, site_id, bytes)");
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

static int cursor_open(sqlite3_vtab *table, sqlite3_vtab_cursor **cursor)
{
    struct merged_cursor *merged = sqlite3_malloc(sizeof(*merged));
    if (!merged)
        return SQLITE_NOMEM;
    *merged = (struct merged_cursor){ .store = ((struct merged_table *)table)->store };
    *cursor = &merged->base;
    return SQLITE_OK;
}

static int cursor_close(sqlite3_vtab_cursor *cursor)
{
    sqlite3_free(cursor);
    return SQLITE_OK;
}

/* A free call_id at or before `wanted` for a late row: neither stored nor given to another of this batch. Not
 * after it, where rows that are still to come may want it. */
static uint64_t free_call_id(struct ct_store *store, uint64_t wanted)
{
    for (;; wanted--) {
        sqlite3_stmt *statement = ct_store_bind(store, FIND_CALL, VALUES((int64_t)wanted));
        const bool stored = sqlite3_step(statement) == SQLITE_ROW;
        sqlite3_reset(statement);
        bool is_new = false;
        if (!stored && ct_intern_get(&store->late, &wanted, &is_new) == 0)
            store->out_of_memory = true;
        if (is_new || store->out_of_memory)
            return wanted;
    }
}

static void defer_late(struct ct_store *store)
{
    const struct ct_row *row = &store->row;
    ct_store_defer(store, CT_INSERT_LATE_CALL,
                   VALUES((int64_t)store->call_id, (int64_t)row->duration_ns, row->site_id,
                          row->has_bytes ? (int64_t)row->bytes : CT_NULL),
                   NULL);
    ct_store_defer(store, CT_MARK_LATE_CALL,
                   VALUES((int64_t)store->call_id, (int64_t)(store->ordered_ns - row->end_ns)), NULL);
}

/* Decides the call_id of the row on top of the merge before it is taken, since its details will name it.
 * Returns false for a late row, which does not go through the table. */
static bool place_row(struct ct_store *store, uint64_t end_ns)
{
    if (end_ns < store->ordered_ns) {
        store->call_id = free_call_id(store, end_ns);
        return false;
    }
    store->ordered_ns = end_ns;
    store->call_id = end_ns > store->last_id ? end_ns : store->last_id + 1;
    store->last_id = store->call_id;
    return true;
}

static int cursor_next(sqlite3_vtab_cursor *cursor)
{
    struct merged_cursor *merged = (struct merged_cursor *)cursor;
    struct ct_store *store = merged->store;
    while (store->rows < store->rows_max && store->merge->count > 0 && !store->out_of_memory) {
        const bool in_order = place_row(store, store->merge->heap[0]->end_ns);
        ct_merge_next(store->merge, &store->row);
        store->rows++;
        if (in_order)
            return SQLITE_OK;
        defer_late(store);
    }
    merged->end = true;
    return SQLITE_OK;
}

static int cursor_filter(sqlite3_vtab_cursor *cursor, int index, const char *name, int argc,
                         sqlite3_value **argv)
{
    (void)index, (void)name, (void)argc, (void)argv;
    ((struct merged_cursor *)cursor)->end = false;
    return cursor_next(cursor);
}

static int cursor_eof(sqlite3_vtab_cursor *cursor)
{
    return ((struct merged_cursor *)cursor)->end;
}

static int cursor_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int column)
{
    const struct ct_store *store = ((struct merged_cursor *)cursor)->store;
    switch (column) {
    case 0:
        sqlite3_result_int64(context, (sqlite3_int64)store->call_id);
        break;
    case 1:
        sqlite3_result_int64(context, (sqlite3_int64)store->row.duration_ns);
        break;
    case 2:
        sqlite3_result_int64(context, store->row.site_id);
        break;
    default:
        if (store->row.has_bytes)
            sqlite3_result_int64(context, (sqlite3_int64)store->row.bytes);
        break;
    }
    return SQLITE_OK;
}

static int cursor_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *rowid)
{
    *rowid = (sqlite3_int64)((struct merged_cursor *)cursor)->store->call_id;
    return SQLITE_OK;
}

const sqlite3_module ct_merged_calls = {
    .xConnect = table_connect,
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
