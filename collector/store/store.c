#include "store.h"

#include "bulk.h"
#include "database_problem.h"
#include "deferred.h"
#include "demangle.h"
#include "numbers.h"
#include "page_loader.h"
#include "returned_work.h"
#include "statements.h"
#include "store_state.h"
#include "stored_calls.h"
#include "test_point.h"
#include "written.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static_assert((int)CT_LEAF_BYTES == (int)CT_STORE_PAGE_BYTES, "a leaf is a page");

/* ---- batches ---- */

/* Discards a batch's IDs, rows and deferred statements, all of which are in memory. */
static void begin_anew(struct ct_store *store)
{
    ct_store_forget_numbers(store);
    ct_returned_clear(store);
    ct_deferred_clear(store);
    ct_bulk_clear(store);
    ct_stored_calls_clear(store);
    memset(store->unmatched, 0, sizeof(store->unmatched));
    store->out_of_memory = false;
}

int ct_store_begin(struct ct_store *store)
{
    /* If the file has been moved, SQLite would continue to write to the moved file. */
    if (!ct_database_in_place(&store->database)) {
        ct_store_commit_wait(store);
        return ct_message(store->error,
                          "database '%s' was moved, deleted or replaced: put it back, or restart the daemon "
                          "to begin a new file",
                          store->database.path);
    }
    store->broken_off = false;
    if (store->numbers_unknown)
        begin_anew(store);
    if (store->numbers_unknown)
        return -1;
    store->begin_is_due = true;
    return store->is_committing ? 0 : ct_store_need_transaction(store);
}

static void roll_back(struct ct_store *store)
{
    if (!sqlite3_get_autocommit(store->database.connection))
        sqlite3_exec(store->database.connection, "ROLLBACK", NULL, NULL, NULL);
    ct_page_loader_end(store);
}

/* Writes and commits the batch that was handed over. */
static int write_batch(void *data)
{
    struct ct_store *store = data;
    if (ct_deferred_run(store) != 0 || ct_bulk_write(store) != 0 ||
        ct_store_run(store, store->statement[CT_SQL_commit], NULL) != 0) {
        roll_back(store);
        return -1;
    }
    ct_page_loader_end(store);
    return 0;
}

static int hand_over(struct ct_store *store)
{
    /* Fail if a row, or anything that a row refers to, was left out, which can happen even in a batch without
     * calls. */
    if (store->out_of_memory)
        return ct_store_no_memory(store);
    if (ct_store_need_transaction(store) != 0 || store->broken_off)
        return -1;
    ct_returned_hand_over(store);
    ct_deferred_hand_over(store);
    ct_bulk_hand_over(store);
    return 0;
}

int ct_store_commit(struct ct_store *store)
{
    if (hand_over(store) != 0 || write_batch(store) != 0)
        return -1;
    ct_stored_calls_committed(store);
    return 0;
}

void ct_store_on_committed(struct ct_store *store, void (*on_committed)(void *data), void *data)
{
    store->on_committed = on_committed;
    store->on_committed_data = data;
}

void ct_store_commit_by_thread(struct ct_store *store)
{
    store->committer = ct_task_create("ct-commit", write_batch, store);
}

bool ct_store_may_commit_start(const struct ct_store *store)
{
    return store->committer && store->calls.late.count == 0;
}

int ct_store_commit_start(struct ct_store *store)
{
    if (hand_over(store) != 0)
        return -1;
    store->is_committing = true;
    CT_TEST_POINT("store.commit_started");
    ct_task_start(store->committer);
    return 0;
}

bool ct_store_commit_is_done(const struct ct_store *store)
{
    return !store->is_committing || ct_task_is_done(store->committer);
}

void ct_store_rollback(struct ct_store *store)
{
    ct_store_commit_wait(store);
    roll_back(store);
    store->has_failed = store->begin_is_due = false;
    begin_anew(store);
}

uint32_t ct_store_generation(const struct ct_store *store)
{
    return store->generation;
}

/* SQLite calls this function after each commit, instead of making a checkpoint. */
static int note_log(void *data, sqlite3 *connection, const char *name, int pages)
{
    (void)connection, (void)name;
    struct ct_store *store = data;
    store->log_pages = (uint32_t)pages;
    return SQLITE_OK;
}

void ct_store_leave_checkpoints(struct ct_store *store)
{
    ct_written_note(&store->database);
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
    ct_written_note(&store->database);
    store->log_is_held = rc == SQLITE_OK && pages != copied;
    store->checkpoint_failed = rc != SQLITE_OK && rc != SQLITE_BUSY;
    if (store->checkpoint_failed)
        snprintf(store->checkpoint_error, sizeof(store->checkpoint_error), "%s",
                 ct_database_problem(store->database.connection));
    return rc == SQLITE_OK && pages == copied;
}

void ct_store_check_written(struct ct_store *store)
{
    ct_written_check(&store->database);
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

const char *ct_store_trace(const struct ct_store *store)
{
    return store->database.trace;
}

uint32_t ct_store_file(const struct ct_store *store)
{
    return store->database.number;
}
const char *ct_store_error(const struct ct_store *store)
{
    return store->error;
}
void ct_store_break_off(struct ct_store *store)
{
    store->broken_off = true;
}
bool ct_store_is_broken_off(const struct ct_store *store)
{
    return store->broken_off;
}
void ct_store_short_of_memory(struct ct_store *store)
{
    ct_store_commit_wait(store); /* the commit may also set the error */
    store->out_of_memory = true;
    ct_store_no_memory(store);
}

/* ---- open and close ---- */

/* Registers and prepares everything for a connection to a trace. Returns an SQLite code. */
static int prepare(struct ct_store *store, sqlite3 *connection, sqlite3_stmt *statement[CT_SQL_COUNT])
{
    const int rc = ct_bulk_register(store, connection);
    return rc == SQLITE_OK ? ct_statements_prepare(connection, statement) : rc;
}

void ct_store_begin_run(struct ct_store *store)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    atomic_store(&store->run_unix_ns, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
}

int ct_store_open(const char *path, const char *session, struct ct_store **result,
                  char message[CT_MESSAGE_BYTES])
{
    struct ct_origin origin;
    const int error = ct_origin_here(&origin, session);
    return error
               ? ct_message(message, "cannot read the kernel's boot ID (/proc/sys/kernel/random/boot_id): %s",
                            strerror(-error))
               : ct_store_open_of(path, &origin, result, message);
}

int ct_store_open_of(const char *path, const struct ct_origin *origin, struct ct_store **result,
                     char message[CT_MESSAGE_BYTES])
{
    struct ct_store *store = calloc(1, sizeof(*store));
    if (!store)
        return ct_message(message, "out of memory");
    store->demangled = malloc(sizeof(*store->demangled));
    if (!store->demangled || ct_database_open(&store->database, path, origin, message) != 0) {
        free(store->demangled);
        free(store);
        return -1;
    }
    ct_store_begin_run(store);
    ct_stored_calls_init(store);
    ct_bulk_init(store);
    const int rc = prepare(store, store->database.connection, store->statement);
    if (rc != SQLITE_OK && rc != SQLITE_ERROR)
        ct_message(message, "cannot read '%s': %s", store->database.path,
                   ct_database_problem(store->database.connection));
    else if (rc != SQLITE_OK)
        ct_message(
            message,
            "'%s' lacks a table or column that this cudatrace writes (%s): name another file with --db",
            store->database.path, sqlite3_errmsg(store->database.connection));
    if (rc != SQLITE_OK) {
        ct_store_close(store);
        return -1;
    }
    ct_page_loader_connect(store);
    ct_store_numbers_init(store);
    begin_anew(store);
    *result = store;
    return 0;
}

int ct_store_go_on(struct ct_store *store)
{
    struct ct_database next;
    sqlite3_stmt *statement[CT_SQL_COUNT] = { 0 };
    if (ct_database_follow(&store->database, &next, store->error) != 0)
        return -1;
    if (prepare(store, next.connection, statement) != SQLITE_OK) {
        snprintf(store->error, sizeof(store->error), "cannot write database '%s': %s", next.path,
                 ct_database_problem(next.connection));
        ct_database_discard(&next);
        return -1;
    }
    CT_TEST_POINT("store.going_on");
    ct_statements_finalize(store->statement);
    ct_earlier_files_begin(&store->earlier, 0);
    ct_database_close(&store->database);
    CT_TEST_POINT("store.went_on");
    store->database = next;
    memcpy(store->statement, statement, sizeof(statement));
    ct_page_loader_connect(store);
    store->log_pages = 0;
    store->log_is_held = store->checkpoint_failed = false; /* both referred to the previous file's log */
    begin_anew(store);
    return 0;
}

void ct_store_prune(struct ct_store *store, uint64_t bytes, uint64_t keep_from_ns,
                    void (*on_removed)(const char *path, int error))
{
    /* Close the earlier files, because the disk space of a removed file is not freed while it is open. */
    ct_earlier_files_begin(&store->earlier, store->earlier.until_ns);
    ct_database_prune(&store->database, bytes, keep_from_ns, on_removed);
}

uint64_t ct_store_bytes(struct ct_store *store)
{
    int64_t pages = 0;
    ct_store_run(store, store->statement[CT_SQL_count_pages], &pages);
    return (uint64_t)pages * CT_STORE_PAGE_BYTES;
}

void ct_store_close(struct ct_store *store)
{
    if (!store)
        return;
    ct_task_destroy(store->committer);
    ct_statements_finalize(store->statement);
    sqlite3_wal_checkpoint_v2(store->database.connection, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    ct_earlier_files_begin(&store->earlier, 0);
    ct_database_close(&store->database);
    ct_store_numbers_finish(store);
    ct_stored_calls_finish(store);
    ct_deferred_finish(store);
    ct_bulk_finish(store);
    ct_page_loader_finish(store);
    free(store->demangled);
    free(store);
}
