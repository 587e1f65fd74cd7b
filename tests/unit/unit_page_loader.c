/* Tests the page loader. Rows that are stored a page at a time must leave the same contents in the file as
 * rows that are stored one by one. The contents must be the same for any rows and any earlier contents, even
 * if other connections modify the file in between. One process intercepts SQLite's page cache, which the page
 * loader needs, and another process does not. Both processes store the same batches. */
#include "../ensure.h"
#include "account.h"
#include "bulk.h"
#include "clock.h"
#include "expire.h"
#include "numbers.h"
#include "page_cache.h"
#include "statements.h"
#include "store.h"
#include "store_state.h"
#include "stored_calls.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH_MIN = 2000 }; /* batches of at least this size use the page loader */

static struct ct_store *store;
static sqlite3 *other; /* another program's connection */
static uint64_t random_state, now_ns, taken_back;

static uint64_t next_random(uint64_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random_state >> 33) % below;
}

static long long ask(sqlite3 *connection, const char *sql)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(connection, sql, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW) {
        fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(connection));
        exit(1);
    }
    const long long value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

static void run(sqlite3 *connection, const char *sql)
{
    char *why = NULL;
    if (sqlite3_exec(connection, sql, NULL, NULL, &why) == SQLITE_OK)
        return;
    fprintf(stderr, "%s: %s\n", sql, why);
    exit(1);
}

static void check(void)
{
    EXPECT(1, ask(other, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"));
}

/* Returns values around the limits above which an integer takes one more byte. */
static uint64_t next_value(void)
{
    static const uint64_t borders[] = {
        0,
        1,
        2,
        127,
        128,
        255,
        256,
        32767,
        32768,
        8388607,
        8388608,
        2147483647,
        2147483648,
        (UINT64_C(1) << 47) - 1,
        UINT64_C(1) << 47,
        INT64_MAX,
    };
    const uint64_t kind = next_random(20);
    return kind < sizeof(borders) / sizeof(borders[0]) ? borders[kind]
                                                       : next_random(UINT64_C(1) << next_random(31));
}

static struct ct_account account;
static struct ct_caller thread = { .account = &account, .thread_id = 1 };
static struct ct_callee function = { .function_id = 1 };

static void put_call(uint64_t end_ns)
{
    const int64_t call_id = ct_store_call(store, &(struct ct_call){
                                                     .end_ns = end_ns,
                                                     .duration_ns = next_value(),
                                                     .caller = &thread,
                                                     .callee = &function,
                                                     .status = (int32_t)next_random(300),
                                                     .kind = CT_KIND_CALL,
                                                     .flags = next_random(5) == 0 ? CT_FLAG_BYTES : 0,
                                                     .value = next_value(),
                                                 });
    const uint64_t detail = next_random(8);
    if (detail < 3) {
        int64_t *launch = ct_bulk_add(store, CT_BULK_LAUNCH, call_id);
        launch[1] = (int64_t)next_random(40);
        launch[2] = (int64_t)next_random(3);
    } else if (detail < 5) {
        int64_t *transfer = ct_bulk_add(store, CT_BULK_TRANSFER, call_id);
        transfer[1] = (int64_t)next_random(9);
        transfer[2] = next_random(3) ? -(int64_t)next_value() : CT_NULL;
        transfer[3] = next_random(3) ? (int64_t)next_value() : CT_NULL;
    }
    if (detail > 3)
        ct_bulk_add(store, CT_BULK_CALL_SUBJECT, call_id)[1] = (int64_t)next_value();
    if (detail > 1) {
        static int64_t run_id;
        int64_t *work = ct_bulk_add(store, CT_BULK_GPU_RUN, ++run_id);
        for (int i = 1; i <= 3; i++)
            work[i] = (int64_t)next_value();
        for (int i = 4; i <= 6; i++)
            work[i] = next_random(3) ? (int64_t)next_value() : CT_NULL;
    }
}

/* Stores calls in order. Some calls have the same time. Occasionally a call is late, either by a lot or by so
 * little that it belongs between recent ones. */
static void fill_batch(size_t rows, bool with_late)
{
    EXPECT(0, ct_store_begin(store));
    for (size_t i = 0; i < rows; i++) {
        const bool is_late = with_late && next_random(50) == 0;
        now_ns += is_late ? 0 : next_random(4) * 100;
        put_call(is_late ? now_ns - 1 - next_random(next_random(2) ? 1000 : 100000000) : now_ns);
    }
}

/* Rolls back a tenth of the batches, and stores them again. */
static void store_batch(size_t rows, bool with_late)
{
    const uint64_t random_before = random_state, ns_before = now_ns;
    if (next_random(10) == 0) {
        const struct rlimit none = { 0, RLIM_INFINITY }, all = { RLIM_INFINITY, RLIM_INFINITY };
        fill_batch(rows, with_late);
        EXPECT(0, setrlimit(RLIMIT_FSIZE, &none)); /* no file can grow */
        const int error = ct_store_commit(store);
        EXPECT(0, setrlimit(RLIMIT_FSIZE, &all));
        if (error) {
            taken_back++;
            ct_store_rollback(store);
            random_state = random_before;
            now_ns = ns_before;
            next_random(10);
            fill_batch(rows, with_late);
            EXPECT(0, ct_store_commit(store));
        }
        return;
    }
    fill_batch(rows, with_late);
    EXPECT(0, ct_store_commit(store));
}

/* Stores batches of all sizes, so that their last pages differ. */
static void store_sizes(void)
{
    for (size_t rows = 0; rows < 40; rows++) {
        store_batch(rows, false);
        store_batch(BATCH_MIN + rows * 7, rows % 3 == 0);
    }
    check();
}

/* Stores single calls across a page boundary. The last page contains one short row, and SQLite would add
 * another row to that page. */
static void store_one_by_one(void)
{
    for (int i = 0; i < 300; i++) {
        EXPECT(0, ct_store_begin(store));
        ct_store_call(store, &(struct ct_call){ .end_ns = now_ns += 1000,
                                                .duration_ns = 1,
                                                .caller = &thread,
                                                .callee = &function,
                                                .kind = CT_KIND_CALL });
        EXPECT(0, ct_store_commit(store));
        if (i % 3 == 0)
            store_batch(BATCH_MIN, false);
    }
    check();
}

/* Other connections add a column, and an index that must contain all rows. They also change other pages, and
 * read an old snapshot. */
static void store_with_others(bool is_loaded)
{
    run(other, "CREATE INDEX mine ON call (duration_ns)");
    const uint64_t loaded = store->loader.rows;
    store_batch(3 * BATCH_MIN, true);
    EXPECT(0, store->loader.rows - loaded);
    check();
    run(other, "DROP INDEX mine");
    store_batch(3 * BATCH_MIN, true);
    EXPECT(is_loaded, store->loader.rows > loaded);
    run(other, "ALTER TABLE launch ADD COLUMN mine INTEGER NOT NULL DEFAULT 5");
    store_batch(3 * BATCH_MIN, true);
    check();
    EXPECT(0, ask(other, "SELECT count(*) FROM launch WHERE mine <> 5"));
    run(other, "ALTER TABLE launch DROP COLUMN mine");
    run(other, "BEGIN");
    const long long before = ask(other, "SELECT count(*) FROM call");
    for (int i = 0; i < 5; i++)
        store_batch(2 * BATCH_MIN, false);
    EXPECT(before, ask(other, "SELECT count(*) FROM call"));
    run(other, "COMMIT");
    EXPECT(before + 10 * BATCH_MIN, ask(other, "SELECT count(*) FROM call"));
    run(other, "VACUUM");
    store_batch(3 * BATCH_MIN, true);
    check();
}

/* If a table is empty, it has no last page to append to. */
static void store_after_all_went(void)
{
    struct ct_expired expired = { .more = true };
    while (expired.more)
        EXPECT(0, ct_store_expire(store, now_ns, now_ns + 1000000, 100000, &expired));
    EXPECT(0, ask(other, "SELECT count(*) FROM call"));
    for (int i = 0; i < 3; i++)
        store_batch(3 * BATCH_MIN, true);
    check();
}

static void store_all(const char *path, bool is_loaded)
{
    char message[CT_MESSAGE_BYTES];
    signal(SIGXFSZ, SIG_IGN);
    if (is_loaded)
        EXPECT(true, ct_page_cache_install());
    if (ct_store_open(path, "test", &store, message) != 0) {
        fprintf(stderr, "%s\n", message);
        exit(1);
    }
    EXPECT(SQLITE_OK, sqlite3_open(path, &other));
    sqlite3_busy_timeout(other, 5000);
    store_batch(3 * BATCH_MIN, true);
    check();
    store_sizes();
    store_one_by_one();
    store_with_others(is_loaded);
    store_after_all_went();
    ENSURE(taken_back > 3);
    EXPECT(is_loaded, store->loader.is_possible);
    EXPECT(is_loaded, store->loader.rows > 150 * BATCH_MIN);
    EXPECT(0, ct_store_begin(store));
    EXPECT(0, ct_store_commit(store));
    sqlite3_close(other);
    ct_store_close(store);
}

int main(void)
{
    char folder[] = "/tmp/cudatrace-page-loader.XXXXXX", path[2][80], sql[256];
    if (!mkdtemp(folder))
        return EXIT_FAILURE;
    now_ns = ct_monotonic_ns() - UINT64_C(100000000000);
    random_state = now_ns;
    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof(path[i]), "%s/%s.db", folder, i ? "loaded" : "by_row");
        const pid_t child = fork();
        if (child == 0) {
            store_all(path[i], i);
            return EXIT_SUCCESS;
        }
        int status = -1;
        waitpid(child, &status, 0);
        EXPECT(0, status);
    }
    EXPECT(SQLITE_OK, sqlite3_open(path[1], &other));
    snprintf(sql, sizeof(sql), "ATTACH '%s' AS by_row", path[0]);
    run(other, sql);
    static const char *const tables[] = { "call",      "launch",    "transfer", "call_subject",
                                          "long_call", "late_call", "gpu_run" };
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        snprintf(sql, sizeof(sql), "SELECT count(*) FROM main.%s", tables[i]);
        ENSURE(ask(other, sql) > 0);
        snprintf(sql, sizeof(sql),
                 "SELECT (SELECT count(*) FROM (SELECT * FROM main.%s EXCEPT SELECT * FROM by_row.%s))"
                 " + (SELECT count(*) FROM (SELECT * FROM by_row.%s EXCEPT SELECT * FROM main.%s))",
                 tables[i], tables[i], tables[i], tables[i]);
        EXPECT(0, ask(other, sql));
    }
    sqlite3_close(other);
    for (int i = 0; i < 2; i++) {
        for (int part = 0; part < 3; part++) {
            snprintf(sql, sizeof(sql), "%s%s", path[i], (const char *[]){ "", "-wal", "-shm" }[part]);
            unlink(sql);
        }
    }
    return rmdir(folder) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
