#include "store_private.h"

#include "demangle.h"
#include "schema_sql.h"
#include "test_point.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* At which a batch ends: some hundred thousand rows' details, and the texts of a few thousand. */
enum { DEFERRED_MAX_BYTES = 16 * 1024 * 1024 };
/* What a statement costs, in rows of plain calls: some 0.3 us here. Of texts no user fills a batch alone
 * (batch.c). */
enum { DEFERRED_EFFORT = 8, KERNEL_EFFORT = 32, TEXT_BYTES_EACH = 32 };

static const char *const statement_sql[STATEMENT_COUNT] = {
    [CT_INSERT_SITE] = ct_sql_store_insert_site,
    [CT_INSERT_THREAD] = ct_sql_store_insert_thread,
    [CT_NAME_OBJECT] = ct_sql_store_name_object,
    [CT_NAME_THREAD] = ct_sql_store_name_thread,
    [CT_ADD_TO_THREAD] = ct_sql_store_add_to_thread,
    [CT_INSERT_SHAPE] = ct_sql_store_insert_shape,
    [CT_INSERT_GRAPH] = ct_sql_store_insert_graph,
    [CT_INSERT_GRAPH_LAUNCH] = ct_sql_store_insert_graph_launch,
    [CT_INSERT_ROUTE] = ct_sql_store_insert_route,
    [CT_INSERT_ALLOCATION] = ct_sql_store_insert_allocation,
    [CT_SUPERSEDE_ALLOCATION] = ct_sql_store_supersede_allocation,
    [CT_FREE_ALLOCATION] = ct_sql_store_free_allocation,
    [CT_SETTLE_LATE_ALLOCATION] = NULL, /* allocations.c */
    [FREE_RANGE] = ct_sql_store_free_range,
    [SUPERSEDE_LATE_ALLOCATION] = ct_sql_store_supersede_late_allocation,
    [CT_SHARE_ALLOCATION] = ct_sql_store_share_allocation,
    [CT_INSERT_SHARED_ALLOCATION] = ct_sql_store_insert_shared_allocation,
    [CT_SIZE_ALLOCATION] = ct_sql_store_size_allocation,
    [CT_INSERT_SUBJECT] = ct_sql_store_insert_subject,
    [CT_INSERT_TEXT] = ct_sql_store_insert_text,
    [CT_INSERT_RANGE] = ct_sql_store_insert_range,
    [CT_INSERT_LATE_CALL] = ct_sql_store_insert_late_call,
    [CT_MARK_LATE_CALL] = ct_sql_store_mark_late_call,
    [CT_DEFINE_KERNEL] = NULL, /* INSERT_NAME and INSERT_KERNEL */
    [INSERT_CALLS] = ct_sql_store_insert_calls,
    [INSERT_BULK + CT_BULK_LAUNCH] = ct_sql_store_insert_launches,
    [INSERT_BULK + CT_BULK_TRANSFER] = ct_sql_store_insert_transfers,
    [INSERT_BULK + CT_BULK_CALL_SUBJECT] = ct_sql_store_insert_call_subjects,
    [INSERT_BULK + CT_BULK_LONG_CALL] = ct_sql_store_insert_long_calls,
    [DOUBT_SEGMENT] = ct_sql_store_doubt_segment,
    [FIND_CALL] = ct_sql_store_find_call,
    [FIND_FUNCTION] = ct_sql_store_find_function,
    [INSERT_FUNCTION] = ct_sql_store_insert_function,
    [INSERT_PROCESS] = ct_sql_store_insert_process,
    [FORGIVE_EARLIER_IMAGES] = ct_sql_store_forgive_earlier_images,
    [FIND_PROCESS] = ct_sql_store_find_process,
    [END_PROCESS] = ct_sql_store_end_process,
    [INSERT_SEGMENT] = ct_sql_store_insert_segment,
    [FIND_LANE] = ct_sql_store_find_lane,
    [SAVE_LANE] = ct_sql_store_save_lane,
    [FIND_LOSSES] = ct_sql_store_find_losses,
    [SAVE_LOSS] = ct_sql_store_save_loss,
    [SAVE_UNSENT] = ct_sql_store_save_unsent,
    [ADD_TOTAL] = ct_sql_store_add_total,
    [ADD_DURATION] = ct_sql_store_add_duration,
    [ADD_FAILURE] = ct_sql_store_add_failure,
    [INSERT_NAME] = ct_sql_store_insert_name,
    [INSERT_KERNEL] = ct_sql_store_insert_kernel,
    [CLEAR_OPEN_CALLS] = ct_sql_store_clear_open_calls,
    [INSERT_OPEN_CALL] = ct_sql_store_insert_open_call,
    [SET_META] = ct_sql_store_set_meta,
    [RUNNING] = ct_sql_store_running,
    [COUNT_PAGES] = "PRAGMA page_count",
    [OLDEST_CALL] = ct_sql_store_oldest_call,
    [NTH_CALL] = ct_sql_store_nth_call,
    [COUNT_EXPIRED] = ct_sql_store_count_expired,
    [EXPIRE_CALLS] = ct_sql_store_expire_calls,
    [EXPIRE_LAUNCHES] = ct_sql_store_expire_launches,
    [EXPIRE_TRANSFERS] = ct_sql_store_expire_transfers,
    [EXPIRE_CALL_SUBJECTS] = ct_sql_store_expire_call_subjects,
    [EXPIRE_LONG_CALLS] = ct_sql_store_expire_long_calls,
    [EXPIRE_LATE_CALLS] = ct_sql_store_expire_late_calls,
    [EXPIRE_RANGES] = ct_sql_store_expire_ranges,
    [EXPIRE_GRAPHS] = ct_sql_store_expire_graphs,
    [EXPIRE_GRAPH_LAUNCHES] = ct_sql_store_expire_graph_launches,
    [EXPIRE_ALLOCATIONS] = ct_sql_store_expire_allocations,
    [EXPIRE_NUMBERS + CT_NUMBER_SITE] = ct_sql_store_expire_sites,
    [EXPIRE_NUMBERS + CT_NUMBER_SHAPE] = ct_sql_store_expire_shapes,
    [EXPIRE_NUMBERS + CT_NUMBER_ROUTE] = ct_sql_store_expire_routes,
    [EXPIRE_NUMBERS + CT_NUMBER_SUBJECT] = ct_sql_store_expire_subjects,
    [EXPIRE_NUMBERS + CT_NUMBER_TEXT] = ct_sql_store_expire_texts,
    [EXPIRE_OBJECT_NAMES] = ct_sql_store_expire_object_names,
    [EXPIRE_KERNELS] = ct_sql_store_expire_kernels,
    [EXPIRE_NAMES] = ct_sql_store_expire_names,
    [EXPIRE_LANES] = ct_sql_store_expire_lanes,
    [EXPIRE_THREADS] = ct_sql_store_expire_threads,
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
};

int ct_store_failed(struct ct_store *store)
{
    /* The statement within which another one failed is about that: SQLite says no more of it than that it was
     * rolled back. */
    if (store->broken_off)
        return -1;
    snprintf(store->error, sizeof(store->error), "cannot write database '%s': %s", store->database.path,
             ct_database_problem(store->database.connection));
    return -1;
}

sqlite3_stmt *ct_store_bind(struct ct_store *store, int which, size_t values, const int64_t *value)
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

void ct_store_bind_text(sqlite3_stmt *statement, size_t place, const char *text)
{
    sqlite3_bind_text(statement, (int)place, text ? text : "", -1, SQLITE_STATIC);
}

int ct_store_step(sqlite3_stmt *statement)
{
    errno = 0;
    return sqlite3_step(statement);
}

int ct_store_run(struct ct_store *store, sqlite3_stmt *statement, int64_t *result)
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
    store->effort +=
        (statement == CT_DEFINE_KERNEL ? KERNEL_EFFORT : DEFERRED_EFFORT) + text_bytes / TEXT_BYTES_EACH;
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

static int define_kernel(struct ct_store *store, int64_t process_id, int64_t number, const char *mangled)
{
    sqlite3_stmt *statement = store->statement[INSERT_NAME];
    int64_t name_id = 0;
    ct_store_bind_text(statement, 1, mangled);
    ct_store_bind_text(statement, 2, ct_demangle(mangled, store->demangled));
    const int error = ct_store_run(store, statement, &name_id);
    return error ? error
                 : ct_store_run(
                       store, ct_store_bind(store, INSERT_KERNEL, VALUES(process_id, number, name_id)), NULL);
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
        } else if (head.statement == CT_FREE_ALLOCATION) {
            error = ct_store_free_allocation(store, value, text);
        } else if (head.statement == CT_SETTLE_LATE_ALLOCATION) {
            error = ct_store_settle_late_allocation(store, value);
        } else {
            sqlite3_stmt *statement = ct_store_bind(store, head.statement, head.values, value);
            if (head.text_bytes)
                ct_store_bind_text(statement, head.values + 1U, text);
            error = ct_store_run(store, statement, NULL);
        }
        if (error)
            return error;
        at += sizeof(head) + head.values * sizeof(*value) + head.text_bytes;
    }
    store->deferred_bytes = 0;
    return 0;
}

/* ---- bulk rows ---- */

static const struct {
    const char *table;
    unsigned columns;
} bulk_tables[CT_BULK_COUNT] = {
    [CT_BULK_LAUNCH] = { "new_launches", 3 },
    [CT_BULK_TRANSFER] = { "new_transfers", 4 },
    [CT_BULK_CALL_SUBJECT] = { "new_call_subjects", 2 },
    [CT_BULK_LONG_CALL] = { "new_long_calls", 2 },
};

void ct_store_add(struct ct_store *store, enum ct_bulk table, const int64_t *value)
{
    store->effort++;
    store->out_of_memory |= !ct_row_buffer_add(&store->bulk[table], value);
}

static int store_bulk(struct ct_store *store)
{
    for (int i = 0; i < CT_BULK_COUNT; i++) {
        if (store->bulk[i].values > 0 && ct_store_run(store, store->statement[INSERT_BULK + i], NULL) != 0)
            return -1;
        ct_row_buffer_clear(&store->bulk[i]);
    }
    return 0;
}

static int register_tables(struct ct_store *store, sqlite3 *connection)
{
    int rc = ct_row_table_register(connection, "merged_calls", &store->merged);
    for (int i = 0; rc == SQLITE_OK && i < CT_BULK_COUNT; i++)
        rc = ct_row_table_register(connection, bulk_tables[i].table, &store->bulk[i].table);
    return rc;
}

/* ---- batches ---- */

/* Nothing of a batch is left in memory: its numbers, its place among the rows, what it deferred. */
static void begin_anew(struct ct_store *store)
{
    ct_store_forget_numbers(store);
    store->deferred_bytes = 0;
    for (int i = 0; i < CT_BULK_COUNT; i++)
        ct_row_buffer_clear(&store->bulk[i]);
    ct_intern_reset(&store->late, 1);
    memset(store->unmatched, 0, sizeof(store->unmatched));
    store->late_tries = 0;
    store->out_of_memory = false;
}

int ct_store_begin(struct ct_store *store)
{
    /* SQLite would go on writing a file that nobody finds any more. */
    if (!ct_database_in_place(&store->database)) {
        snprintf(store->error, sizeof(store->error),
                 "database '%s' was moved, deleted or replaced: put it back, or stop this daemon and start "
                 "another one, which goes on in a new file",
                 store->database.path);
        return -1;
    }
    store->broken_off = false;
    if (store->numbers_unknown)
        begin_anew(store);
    return store->numbers_unknown ? -1 : ct_store_run(store, store->statement[BEGIN], NULL);
}

int ct_store_calls(struct ct_store *store, struct ct_merge *merge, uint64_t rows_max, uint64_t *rows)
{
    store->merge = merge;
    store->rows = 0;
    store->rows_max = rows_max;
    const int error = ct_store_run(store, store->statement[INSERT_CALLS], NULL);
    *rows = store->rows;
    return store->broken_off ? -1 : error;
}

int ct_store_commit(struct ct_store *store)
{
    /* Whatever was left out for it, rows or what they name: also where there was no call to store. */
    if (store->out_of_memory) {
        ct_store_short_of_memory(store);
        return -1;
    }
    if (run_deferred(store) != 0)
        return -1;
    CT_TEST_POINT("store.deferred");
    if (store_bulk(store) != 0)
        return -1;
    CT_TEST_POINT("store.bulk");
    if (ct_store_run(store, store->statement[COMMIT], NULL) != 0)
        return -1;
    if (store->late.count > 0) {
        store->late_rows += store->late.count;
        ct_intern_reset(&store->late, 1);
        store->late_tries = 0;
    }
    return 0;
}

void ct_store_rollback(struct ct_store *store)
{
    if (!sqlite3_get_autocommit(store->database.connection))
        sqlite3_exec(store->database.connection, "ROLLBACK", NULL, NULL, NULL);
    begin_anew(store);
}

uint32_t ct_store_generation(const struct ct_store *store)
{
    return store->generation;
}
uint64_t ct_store_call_id(const struct ct_store *store)
{
    return store->call_id;
}
bool ct_store_is_late(const struct ct_store *store)
{
    return store->call_id < store->last_id;
}
void ct_store_break_off(struct ct_store *store)
{
    store->broken_off = true;
}
uint64_t ct_store_effort(const struct ct_store *store)
{
    return store->effort - store->effort_before;
}
uint64_t ct_store_late_rows(const struct ct_store *store)
{
    return store->late_rows;
}

/* Called by SQLite behind each commit, in the place of its own checkpoints. */
static int note_log(void *data, sqlite3 *connection, const char *name, int pages)
{
    (void)connection, (void)name;
    struct ct_store *store = data;
    store->log_pages = (uint32_t)pages;
    return SQLITE_OK;
}

void ct_store_leave_checkpoints(struct ct_store *store)
{
    sqlite3_wal_hook(store->database.connection, note_log, store);
}
uint32_t ct_store_log_pages(const struct ct_store *store)
{
    return store->log_pages;
}

bool ct_store_checkpoint(struct ct_store *store)
{
    int pages = 0, copied = 0;
    errno = 0;
    const int rc = sqlite3_wal_checkpoint_v2(store->database.connection, NULL, SQLITE_CHECKPOINT_PASSIVE,
                                             &pages, &copied);
    store->log_is_held = rc == SQLITE_OK && pages != copied;
    store->checkpoint_failed = rc != SQLITE_OK && rc != SQLITE_BUSY;
    if (store->checkpoint_failed)
        snprintf(store->checkpoint_error, sizeof(store->checkpoint_error), "%s",
                 ct_database_problem(store->database.connection));
    return rc == SQLITE_OK && pages == copied;
}

bool ct_store_log_is_held(const struct ct_store *store)
{
    return store->log_is_held;
}

const char *ct_store_checkpoint_error(const struct ct_store *store)
{
    return store->checkpoint_failed ? store->checkpoint_error : NULL;
}

const char *ct_store_path(const struct ct_store *store)
{
    return store->database.path;
}
uint32_t ct_store_file(const struct ct_store *store)
{
    return store->database.number;
}
const char *ct_store_error(const struct ct_store *store)
{
    return store->error;
}
bool ct_store_is_full(const struct ct_store *store)
{
    return store->deferred_bytes > DEFERRED_MAX_BYTES;
}
void ct_store_short_of_memory(struct ct_store *store)
{
    store->out_of_memory = true;
    snprintf(store->error, sizeof(store->error), "out of memory");
}

/* ---- open and close ---- */

static void finalize(sqlite3_stmt *statement[STATEMENT_COUNT])
{
    for (int i = 0; i < STATEMENT_COUNT; i++) {
        sqlite3_finalize(statement[i]);
        statement[i] = NULL;
    }
}

/* Registers and prepares all that a connection to a trace runs; an SQLite code, with nothing prepared unless
 * it is SQLITE_OK. */
static int prepare(struct ct_store *store, sqlite3 *connection, sqlite3_stmt *statement[STATEMENT_COUNT])
{
    int rc = register_tables(store, connection);
    for (int i = 0; i < STATEMENT_COUNT; i++) {
        statement[i] = NULL;
        if (rc == SQLITE_OK && statement_sql[i])
            rc = sqlite3_prepare_v3(connection, statement_sql[i], -1, SQLITE_PREPARE_PERSISTENT,
                                    &statement[i], NULL);
    }
    if (rc != SQLITE_OK)
        finalize(statement);
    return rc;
}

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
    ct_merged_calls_init(store);
    for (int i = 0; i < CT_BULK_COUNT; i++)
        ct_row_buffer_init(&store->bulk[i], bulk_tables[i].columns);
    const int rc = prepare(store, store->database.connection, store->statement);
    if (rc != SQLITE_OK && rc != SQLITE_ERROR)
        snprintf(message, CT_STORE_MESSAGE_BYTES, "cannot read '%s': %s", store->database.path,
                 ct_database_problem(store->database.connection));
    else if (rc != SQLITE_OK)
        snprintf(message, CT_STORE_MESSAGE_BYTES,
                 "'%s' lacks what this cudatrace writes (%s): name another file with --db",
                 store->database.path, sqlite3_errmsg(store->database.connection));
    if (rc != SQLITE_OK) {
        ct_store_close(store);
        return -1;
    }
    ct_store_numbers_init(store);
    ct_intern_init(&store->late, sizeof(uint64_t), SIZE_MAX, 1);
    begin_anew(store);
    *result = store;
    return 0;
}

int ct_store_go_on(struct ct_store *store)
{
    struct ct_database next;
    sqlite3_stmt *statement[STATEMENT_COUNT];
    if (ct_database_follow(&store->database, &next, store->error) != 0)
        return -1;
    if (prepare(store, next.connection, statement) != SQLITE_OK) {
        snprintf(store->error, sizeof(store->error), "cannot write database '%s': %s", next.path,
                 ct_database_problem(next.connection));
        ct_database_discard(&next);
        return -1;
    }
    CT_TEST_POINT("store.going_on");
    finalize(store->statement);
    ct_earlier_begin(&store->earlier, 0);
    ct_database_close(&store->database);
    CT_TEST_POINT("store.went_on");
    store->database = next;
    memcpy(store->statement, statement, sizeof(statement));
    store->log_pages = 0;
    store->log_is_held = store->checkpoint_failed = false; /* said of the log of the file before */
    begin_anew(store);
    return 0;
}

void ct_store_prune(struct ct_store *store, uint64_t bytes, uint64_t keep_from_ns,
                    void (*on_removed)(const char *path))
{
    /* Whoever has a file open keeps its room on the disk. */
    ct_earlier_begin(&store->earlier, store->earlier.until_ns);
    ct_database_prune(&store->database, bytes, keep_from_ns, on_removed);
}

uint64_t ct_store_bytes(struct ct_store *store)
{
    int64_t pages = 0;
    ct_store_run(store, store->statement[COUNT_PAGES], &pages);
    return (uint64_t)pages * CT_STORE_PAGE_BYTES;
}

void ct_store_close(struct ct_store *store)
{
    if (!store)
        return;
    finalize(store->statement);
    sqlite3_wal_checkpoint_v2(store->database.connection, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    ct_earlier_begin(&store->earlier, 0);
    ct_database_close(&store->database);
    ct_store_numbers_finish(store);
    ct_intern_finish(&store->late);
    for (int i = 0; i < CT_BULK_COUNT; i++)
        ct_row_buffer_finish(&store->bulk[i]);
    free(store->deferred);
    free(store->demangled);
    free(store);
}
