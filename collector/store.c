#include "store.h"

#include "database.h"
#include "intern.h"
#include "record.h"
#include "schema_sql.h"

#include <inttypes.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- statements ---- */

enum statement {
    /* The deferred ones come first, in the order of enum ct_deferred. */
    INSERT_CALLS = CT_DEFERRED_COUNT,
    FIND_CALL,
    INSERT_FUNCTION,
    INSERT_PROCESS,
    END_PROCESS,
    INSERT_SEGMENT,
    FIND_LANE,
    SAVE_LANE,
    FIND_LOSSES,
    SAVE_LOSS,
    SAVE_UNSENT,
    ADD_TOTAL,
    INSERT_NAME,
    INSERT_KERNEL,
    CLEAR_OPEN_CALLS,
    INSERT_OPEN_CALL,
    SET_META,
    RUNNING,
    BEGIN,
    COMMIT,
    STATEMENT_COUNT
};

static const char *const statement_sql[STATEMENT_COUNT] = {
    [CT_INSERT_SITE] = ct_sql_store_insert_site,
    [CT_INSERT_THREAD] = ct_sql_store_insert_thread,
    [CT_INSERT_SHAPE] = ct_sql_store_insert_shape,
    [CT_INSERT_LAUNCH] = ct_sql_store_insert_launch,
    [CT_INSERT_GRAPH_LAUNCH] = ct_sql_store_insert_graph_launch,
    [CT_INSERT_ROUTE] = ct_sql_store_insert_route,
    [CT_INSERT_TRANSFER] = ct_sql_store_insert_transfer,
    [CT_INSERT_ALLOCATION] = ct_sql_store_insert_allocation,
    [CT_FREE_ALLOCATION] = ct_sql_store_free_allocation,
    [CT_INSERT_SUBJECT] = ct_sql_store_insert_subject,
    [CT_INSERT_LATE_CALL] = ct_sql_store_insert_late_call,
    [CT_MARK_LATE_CALL] = ct_sql_store_mark_late_call,
    [CT_DEFINE_KERNEL] = NULL, /* INSERT_NAME and INSERT_KERNEL */
    [INSERT_CALLS] = ct_sql_store_insert_calls,
    [FIND_CALL] = ct_sql_store_find_call,
    [INSERT_FUNCTION] = ct_sql_store_insert_function,
    [INSERT_PROCESS] = ct_sql_store_insert_process,
    [END_PROCESS] = ct_sql_store_end_process,
    [INSERT_SEGMENT] = ct_sql_store_insert_segment,
    [FIND_LANE] = ct_sql_store_find_lane,
    [SAVE_LANE] = ct_sql_store_save_lane,
    [FIND_LOSSES] = ct_sql_store_find_losses,
    [SAVE_LOSS] = ct_sql_store_save_loss,
    [SAVE_UNSENT] = ct_sql_store_save_unsent,
    [ADD_TOTAL] = ct_sql_store_add_total,
    [INSERT_NAME] = ct_sql_store_insert_name,
    [INSERT_KERNEL] = ct_sql_store_insert_kernel,
    [CLEAR_OPEN_CALLS] = ct_sql_store_clear_open_calls,
    [INSERT_OPEN_CALL] = ct_sql_store_insert_open_call,
    [SET_META] = ct_sql_store_set_meta,
    [RUNNING] = ct_sql_store_running,
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
};

const char *const ct_loss_cause_name[] = { "full", "signal", "memory", "unknown" };

enum {
    SITES_MAX = 1 << 18,
    SHAPES_MAX = 1 << 16,
    ROUTES_MAX = 1 << 16,
    DEMANGLED_MAX = 64 * 1024,
};

struct ct_store {
    struct ct_database database;
    sqlite3_stmt *statement[STATEMENT_COUNT];
    uint32_t generation;

    struct ct_intern sites, shapes, routes;
    int64_t next_thread_id;

    /* Deferred statements, packed one behind the other: struct deferred, its values, its text. */
    uint8_t *deferred;
    size_t deferred_bytes, deferred_capacity;
    bool out_of_memory;

    /* The rows being stored. */
    struct ct_merge *merge;
    uint64_t rows, rows_max;
    uint64_t ordered_ns; /* rows return from here on, or are late */
    uint64_t last_id;    /* call_id of the last row in order */
    uint64_t call_id;    /* of the row being taken */
    struct ct_row row;
    struct ct_intern late; /* call_ids of the late rows of this batch */
    uint64_t late_rows;

    struct demangled *demangled;
    char error[CT_STORE_MESSAGE_BYTES];
};

static int failed(struct ct_store *store)
{
    snprintf(store->error, sizeof(store->error), "cannot write database '%s': %s", store->database.path,
             sqlite3_errmsg(store->database.connection));
    return -1;
}

/* Binds integers; CT_NULL is NULL. */
static sqlite3_stmt *bind(struct ct_store *store, int which, size_t values, const int64_t *value)
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
#define VALUES(...)                                                                                          \
    sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), (const int64_t[])                            \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }

static void bind_text(sqlite3_stmt *statement, size_t place, const char *text)
{
    sqlite3_bind_text(statement, (int)place, text ? text : "", -1, SQLITE_STATIC);
}

/* Runs a statement; its first row's first column, if it returns one, goes to *result. */
static int run(struct ct_store *store, sqlite3_stmt *statement, int64_t *result)
{
    int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW && result)
        *result = sqlite3_column_int64(statement, 0);
    while (rc == SQLITE_ROW)
        rc = sqlite3_step(statement);
    const int error = rc == SQLITE_DONE ? 0 : failed(store);
    sqlite3_reset(statement);
    return error;
}

/* ---- the virtual table: the merge as SQLite reads it ---- */

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
        sqlite3_stmt *statement = bind(store, FIND_CALL, VALUES((int64_t)wanted));
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

static const sqlite3_module merged_calls = {
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

/* ---- deferred statements ---- */

struct deferred {
    uint16_t statement;
    uint16_t values;
    uint32_t text_bytes; /* with its NUL, padded to 8; 0 for none */
};

void ct_store_defer(struct ct_store *store, enum ct_deferred statement, size_t values, const int64_t *value,
                    const char *text)
{
    const size_t text_bytes = text ? (strlen(text) + 8) & ~(size_t)7 : 0;
    const size_t wanted = sizeof(struct deferred) + values * sizeof(*value) + text_bytes;
    if (store->deferred_bytes + wanted > store->deferred_capacity) {
        const size_t capacity = store->deferred_capacity * 2 + wanted + 65536;
        uint8_t *deferred = realloc(store->deferred, capacity);
        if (!deferred) {
            store->out_of_memory = true;
            return;
        }
        store->deferred = deferred;
        store->deferred_capacity = capacity;
    }
    uint8_t *place = store->deferred + store->deferred_bytes;
    const struct deferred head = { (uint16_t)statement, (uint16_t)values, (uint32_t)text_bytes };
    memcpy(place, &head, sizeof(head));
    memcpy(place + sizeof(head), value, values * sizeof(*value));
    if (text) {
        memset(place + wanted - text_bytes, 0, text_bytes);
        memcpy(place + wanted - text_bytes, text, strlen(text));
    }
    store->deferred_bytes += wanted;
}

/* Demangled text as it comes. A short name can stand for gigabytes; past the limit the demangler is left by a
 * jump, which leaks nothing, since it allocates on the stack alone. */
struct demangled {
    jmp_buf enough;
    size_t bytes;
    char text[DEMANGLED_MAX + 1];
};

static void on_demangled(const char *piece, size_t bytes, void *data)
{
    struct demangled *out = data;
    if (bytes > DEMANGLED_MAX - out->bytes)
        longjmp(out->enough, 1);
    memcpy(out->text + out->bytes, piece, bytes);
    out->bytes += bytes;
}

/* The demangled form of an Itanium C++ name; others stand for themselves. The demangler's own limit would
 * refuse names of 1 KiB, which CUTLASS has; the worker's stack has room for the recursion of the longest
 * string. */
static const char *demangle(const char *mangled, struct demangled *out)
{
    out->bytes = 0;
    if (strncmp(mangled, "_Z", 2) != 0 || setjmp(out->enough) != 0 ||
        !cplus_demangle_v3_callback(mangled, DMGL_PARAMS | DMGL_ANSI | DMGL_NO_RECURSE_LIMIT, on_demangled,
                                    out))
        return mangled;
    out->text[out->bytes] = '\0';
    return out->text;
}

static int define_kernel(struct ct_store *store, int64_t process_id, int64_t number, const char *mangled)
{
    sqlite3_stmt *statement = store->statement[INSERT_NAME];
    int64_t name_id = 0;
    bind_text(statement, 1, mangled);
    bind_text(statement, 2, demangle(mangled, store->demangled));
    const int error = run(store, statement, &name_id);
    return error ? error : run(store, bind(store, INSERT_KERNEL, VALUES(process_id, number, name_id)), NULL);
}

static int run_deferred(struct ct_store *store)
{
    size_t at = 0;
    while (at < store->deferred_bytes) {
        struct deferred head;
        memcpy(&head, store->deferred + at, sizeof(head));
        const int64_t *value = (const int64_t *)(const void *)(store->deferred + at + sizeof(head));
        const char *text = (const char *)(value + head.values);
        int error;
        if (head.statement == CT_DEFINE_KERNEL) {
            error = define_kernel(store, value[0], value[1], text);
        } else {
            sqlite3_stmt *statement = bind(store, head.statement, head.values, value);
            if (head.text_bytes)
                bind_text(statement, head.values + 1U, text);
            error = run(store, statement, NULL);
        }
        if (error)
            return error;
        at += sizeof(head) + head.values * sizeof(*value) + head.text_bytes;
    }
    store->deferred_bytes = 0;
    return 0;
}

/* ---- numbers ---- */

static int64_t first_free(struct ct_store *store, const char *sql)
{
    sqlite3_stmt *statement;
    int64_t number = 0;
    if (sqlite3_prepare_v2(store->database.connection, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return number + 1;
}

/* Numbers go on behind those that are in the database. */
static void forget_numbers(struct ct_store *store)
{
    ct_intern_reset(&store->sites, first_free(store, "SELECT max(site_id) FROM site"));
    ct_intern_reset(&store->shapes, first_free(store, "SELECT max(shape_id) FROM shape"));
    ct_intern_reset(&store->routes, first_free(store, "SELECT max(route_id) FROM route"));
    store->next_thread_id = first_free(store, "SELECT max(thread_id) FROM thread");
    store->last_id = (uint64_t)first_free(store, "SELECT max(end_ns) FROM call") - 1;
    store->ordered_ns = store->last_id;
    store->deferred_bytes = 0;
    ct_intern_reset(&store->late, 1);
    store->out_of_memory = false;
    store->generation++;
}

int64_t ct_store_site(struct ct_store *store, int64_t thread_id, int64_t function_id, uint32_t depth,
                      int32_t status)
{
    const int64_t key[] = { thread_id, function_id, (int64_t)((uint64_t)depth << 32 | (uint32_t)status) };
    bool is_new;
    const int64_t site = ct_intern_get(&store->sites, key, &is_new);
    if (is_new)
        ct_store_defer(store, CT_INSERT_SITE, VALUES(site, thread_id, function_id, depth, status), NULL);
    store->out_of_memory |= site == 0;
    return site;
}

int64_t ct_store_thread(struct ct_store *store, int64_t process_id, uint32_t tid, const char *name)
{
    const int64_t thread_id = store->next_thread_id++;
    ct_store_defer(store, CT_INSERT_THREAD, VALUES(thread_id, process_id, tid), name);
    return thread_id;
}

int64_t ct_store_shape(struct ct_store *store, const int64_t value[CT_SHAPE_VALUES])
{
    bool is_new;
    const int64_t shape = ct_intern_get(&store->shapes, value, &is_new);
    if (is_new) {
        int64_t row[1 + CT_SHAPE_VALUES] = { shape };
        memcpy(row + 1, value, CT_SHAPE_VALUES * sizeof(*value));
        ct_store_defer(store, CT_INSERT_SHAPE, 1 + CT_SHAPE_VALUES, row, NULL);
    }
    store->out_of_memory |= shape == 0;
    return shape;
}

int64_t ct_store_route(struct ct_store *store, const int64_t value[CT_ROUTE_VALUES], const char *kind)
{
    bool is_new;
    const int64_t route = ct_intern_get(&store->routes, value, &is_new);
    if (is_new)
        ct_store_defer(store, CT_INSERT_ROUTE, VALUES(route, value[0], value[2], value[3], value[4]), kind);
    store->out_of_memory |= route == 0;
    return route;
}

/* ---- batches ---- */

int ct_store_begin(struct ct_store *store)
{
    return run(store, store->statement[BEGIN], NULL);
}

int ct_store_calls(struct ct_store *store, struct ct_merge *merge, uint64_t rows_max, uint64_t *rows)
{
    store->merge = merge;
    store->rows = 0;
    store->rows_max = rows_max;
    const int error = run(store, store->statement[INSERT_CALLS], NULL);
    *rows = store->rows;
    if (!error && store->out_of_memory) {
        snprintf(store->error, sizeof(store->error), "out of memory");
        return -1;
    }
    return error;
}

int ct_store_commit(struct ct_store *store)
{
    if (run_deferred(store) != 0)
        return -1;
    if (store->late.count > 0) {
        store->late_rows += store->late.count;
        ct_intern_reset(&store->late, 1);
    }
    return run(store, store->statement[COMMIT], NULL);
}

void ct_store_rollback(struct ct_store *store)
{
    if (!sqlite3_get_autocommit(store->database.connection))
        sqlite3_exec(store->database.connection, "ROLLBACK", NULL, NULL, NULL);
    forget_numbers(store);
}

uint32_t ct_store_generation(const struct ct_store *store)
{
    return store->generation;
}
uint64_t ct_store_call_id(const struct ct_store *store)
{
    return store->call_id;
}
uint64_t ct_store_late_rows(const struct ct_store *store)
{
    return store->late_rows;
}
const char *ct_store_path(const struct ct_store *store)
{
    return store->database.path;
}
const char *ct_store_error(const struct ct_store *store)
{
    return store->error;
}

/* ---- rows about processes ---- */

int ct_store_process(struct ct_store *store, const struct ct_process_facts *facts, int64_t *process_id,
                     int64_t *segment_id)
{
    sqlite3_stmt *statement = bind(store, INSERT_PROCESS,
                                   VALUES(facts->pid, (int64_t)facts->start_ticks, (int64_t)facts->image_ns,
                                          facts->uid, (int64_t)facts->started_ns));
    bind_text(statement, 6, facts->exe);
    bind_text(statement, 7, facts->cmdline);
    if (run(store, statement, process_id) != 0)
        return -1;
    statement = bind(store, INSERT_SEGMENT, VALUES(*process_id));
    bind_text(statement, 2, facts->segment);
    return run(store, statement, segment_id);
}

int ct_store_end_process(struct ct_store *store, int64_t process_id, uint64_t ended_ns, const char *state)
{
    sqlite3_stmt *statement = bind(store, END_PROCESS, VALUES(process_id, (int64_t)ended_ns));
    bind_text(statement, 3, state);
    return run(store, statement, NULL);
}

int ct_store_end_orphans(struct ct_store *store, uint64_t now_ns,
                         bool (*alive)(int32_t pid, uint64_t start_ticks), uint64_t *alive_too)
{
    uint64_t running = 0;
    sqlite3_stmt *statement = store->statement[RUNNING];
    int rc, error = 0;
    while (!error && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        if (alive((int32_t)sqlite3_column_int(statement, 1), (uint64_t)sqlite3_column_int64(statement, 2)))
            running++;
        else
            error = ct_store_end_process(store, sqlite3_column_int64(statement, 0), now_ns, "exited");
    }
    sqlite3_reset(statement);
    if (alive_too)
        *alive_too = running;
    return error;
}

int ct_store_function(struct ct_store *store, const char *layer, const char *name, const char *category,
                      int64_t *function_id)
{
    sqlite3_stmt *statement = store->statement[INSERT_FUNCTION];
    bind_text(statement, 1, layer);
    bind_text(statement, 2, name);
    bind_text(statement, 3, category);
    return run(store, statement, function_id);
}

int ct_store_find_lane(struct ct_store *store, int64_t segment_id, uint32_t lane, struct ct_lane_place *place)
{
    sqlite3_stmt *statement = bind(store, FIND_LANE, VALUES(segment_id, lane));
    const int rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) {
        place->position = (uint64_t)sqlite3_column_int64(statement, 0);
        place->thread_id = sqlite3_column_int64(statement, 1);
        place->tid = (uint32_t)sqlite3_column_int64(statement, 2);
    }
    sqlite3_reset(statement);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : failed(store);
}

int ct_store_save_lane(struct ct_store *store, int64_t segment_id, uint32_t lane,
                       const struct ct_lane_place *place)
{
    const int64_t thread_id = place->thread_id ? place->thread_id : CT_NULL;
    return run(store, bind(store, SAVE_LANE, VALUES(segment_id, lane, (int64_t)place->position, thread_id)),
               NULL);
}

int ct_store_find_losses(struct ct_store *store, int64_t segment_id, uint32_t lane, uint32_t tenancy,
                         uint64_t *lost)
{
    sqlite3_stmt *statement = bind(store, FIND_LOSSES, VALUES(segment_id, lane, tenancy));
    int rc;
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *cause = (const char *)sqlite3_column_text(statement, 0);
        for (int i = 0; cause && i < 4; i++) {
            if (strcmp(cause, ct_loss_cause_name[i]) == 0)
                lost[i] += (uint64_t)sqlite3_column_int64(statement, 1);
        }
    }
    sqlite3_reset(statement);
    return rc == SQLITE_DONE ? 0 : failed(store);
}

int ct_store_save_loss(struct ct_store *store, const struct ct_loss_facts *facts)
{
    sqlite3_stmt *statement = store->statement[SAVE_LOSS];
    bind(store, SAVE_LOSS, VALUES(facts->segment_id, facts->lane, facts->tenancy, facts->tid));
    bind_text(statement, 5, ct_loss_cause_name[facts->cause]);
    sqlite3_bind_int64(statement, 6, (sqlite3_int64)facts->calls);
    sqlite3_bind_int64(statement, 7, (sqlite3_int64)facts->first_ns);
    sqlite3_bind_int64(statement, 8, (sqlite3_int64)facts->last_ns);
    return run(store, statement, NULL);
}

int ct_store_save_unsent(struct ct_store *store, int64_t segment_id, uint32_t entry, int64_t function_id,
                         const struct ct_unsent_facts *facts)
{
    return run(store,
               bind(store, SAVE_UNSENT,
                    VALUES(segment_id, entry, function_id, (int64_t)facts->lost, (int64_t)facts->lost_ns,
                           (int64_t)facts->lost_bytes, (int64_t)facts->skipped, (int64_t)facts->skipped_ns,
                           (int64_t)facts->skipped_bytes)),
               NULL);
}

int ct_store_add_total(struct ct_store *store, int64_t process_id, int64_t function_id,
                       const struct ct_total_facts *facts)
{
    return run(store,
               bind(store, ADD_TOTAL,
                    VALUES(process_id, function_id, (int64_t)facts->calls, (int64_t)facts->total_ns,
                           (int64_t)facts->min_ns, (int64_t)facts->max_ns, (int64_t)facts->bytes)),
               NULL);
}

int ct_store_clear_open_calls(struct ct_store *store, int64_t process_id)
{
    return run(store, bind(store, CLEAR_OPEN_CALLS, VALUES(process_id)), NULL);
}

int ct_store_open_call(struct ct_store *store, int64_t process_id, int64_t thread_id, uint32_t depth,
                       int64_t function_id, uint64_t start_ns)
{
    return run(
        store,
        bind(store, INSERT_OPEN_CALL, VALUES(process_id, thread_id, depth, function_id, (int64_t)start_ns)),
        NULL);
}

int ct_store_set_meta(struct ct_store *store, const char *key, int64_t value)
{
    sqlite3_stmt *statement = store->statement[SET_META];
    bind_text(statement, 1, key);
    sqlite3_bind_int64(statement, 2, value);
    return run(store, statement, NULL);
}

/* ---- open and close ---- */

int ct_store_open(const char *path, const char *session, struct ct_store **result,
                  char message[CT_STORE_MESSAGE_BYTES])
{
    struct ct_store *store = calloc(1, sizeof(*store));
    if (!store) {
        snprintf(message, CT_STORE_MESSAGE_BYTES, "out of memory");
        return -1;
    }
    store->demangled = malloc(sizeof(*store->demangled));
    if (!store->demangled || ct_database_open(&store->database, path, session, message) != 0) {
        free(store->demangled);
        free(store);
        return -1;
    }
    sqlite3 *connection = store->database.connection;
    int rc = sqlite3_create_module(connection, "merged_calls", &merged_calls, store);
    for (int i = 0; rc == SQLITE_OK && i < STATEMENT_COUNT; i++) {
        if (statement_sql[i])
            rc = sqlite3_prepare_v3(connection, statement_sql[i], -1, SQLITE_PREPARE_PERSISTENT,
                                    &store->statement[i], NULL);
    }
    if (rc != SQLITE_OK) {
        snprintf(message, CT_STORE_MESSAGE_BYTES,
                 "'%s' lacks what this cudatrace writes (%s): name another file with --db",
                 store->database.path, sqlite3_errmsg(connection));
        ct_store_close(store);
        return -1;
    }
    ct_intern_init(&store->sites, 3 * sizeof(int64_t), SITES_MAX, 1);
    ct_intern_init(&store->shapes, CT_SHAPE_VALUES * sizeof(int64_t), SHAPES_MAX, 1);
    ct_intern_init(&store->routes, CT_ROUTE_VALUES * sizeof(int64_t), ROUTES_MAX, 1);
    ct_intern_init(&store->late, sizeof(uint64_t), SIZE_MAX, 1);
    forget_numbers(store);
    *result = store;
    return 0;
}

void ct_store_close(struct ct_store *store)
{
    if (!store)
        return;
    for (int i = 0; i < STATEMENT_COUNT; i++)
        sqlite3_finalize(store->statement[i]);
    sqlite3_wal_checkpoint_v2(store->database.connection, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    ct_database_close(&store->database);
    ct_intern_finish(&store->sites);
    ct_intern_finish(&store->shapes);
    ct_intern_finish(&store->routes);
    ct_intern_finish(&store->late);
    free(store->deferred);
    free(store->demangled);
    free(store);
}
