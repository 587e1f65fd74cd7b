/* Tests the store. Late and long calls must be stored where queries for a window look for them. Calls older
 * than the limit must be removed in pieces, in order and with their parts, and must be counted. Allocations
 * that are still held, and objects that are still in use, must remain. */
#include "account.h"
#include "clock.h"
#include "deferred.h"
#include "expire.h"
#include "fields.h"
#include "numbers.h"
#include "payload.h"
#include "process_rows.h"
#include "statements.h"
#include "store.h"
#include "store_state.h"
#include "stored_calls.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

static struct ct_store *store;
static sqlite3 *reader;
static int64_t process_id, segment_id, function_id, thread_id;
static uint64_t stored;
static struct ct_account account;
static struct ct_callee function;
static struct ct_caller thread = { .account = &account };

static void fail(const char *what, long long seen, long long wanted)
{
    fprintf(stderr, "%s: %lld, and should be %lld; %s\n", what, seen, wanted, ct_store_error(store));
    exit(EXIT_FAILURE);
}

static void equal(const char *what, long long seen, long long wanted)
{
    if (seen != wanted)
        fail(what, seen, wanted);
}

/* Returns the value in the query's only column and row. */
static long long ask(const char *sql)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(reader, sql, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW)
        fail(sqlite3_errmsg(reader), 0, 0);
    const long long value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

/* Stores a batch of the given calls (end_ns, duration_ns), with a launch for each call. Returns the ID of the
 * calls' site. */
static int64_t store_calls(const uint64_t call[][2], size_t count)
{
    equal("begin", ct_store_begin(store), 0);
    static const struct ct_launch launch = { .kernel = 1 };
    struct ct_call taken = { .caller = &thread,
                             .callee = &function,
                             .payload = &launch,
                             .payload_bytes = sizeof(launch),
                             .kind = CT_KIND_LAUNCH };
    for (size_t i = 0; i < count; i++) {
        taken.end_ns = call[i][0];
        taken.duration_ns = call[i][1];
        equal("a batch takes calls", ct_store_takes_calls(store), true);
        ct_store_call(store, &taken);
    }
    equal("sums",
          ct_store_do(store, CT_SQL_add_total,
                      CT_VALUES(process_id, function_id, (int64_t)count, 0, 1, 1, 0, 0)),
          0);
    equal("commit", ct_store_commit(store), 0);
    stored += count;
    return ct_store_site(store, &taken);
}

static void check_counts(void)
{
    equal("stored", ask("SELECT sum(stored) FROM totals"), (long long)stored);
    equal("stored and not expired", ask("SELECT sum(stored - expired) FROM totals"),
          ask("SELECT count(*) FROM calls"));
    equal("launches without a call",
          ask("SELECT count(*) FROM launch WHERE call_id NOT IN (SELECT end_ns FROM call)"), 0);
    equal("calls without their launch",
          ask("SELECT count(*) FROM call WHERE end_ns NOT IN (SELECT call_id FROM launch)"), 0);
    equal("long calls",
          ask("SELECT count(*) FROM long_call JOIN call ON end_ns = call_id "
              "AND start_ns = end_ns - duration_ns AND duration_ns > 100000000"),
          ask("SELECT count(*) FROM call WHERE duration_ns > 100000000"));
    equal("long calls that are none",
          ask("SELECT (SELECT count(*) FROM long_call) - (SELECT count(*) FROM call WHERE duration_ns > "
              "100000000)"),
          0);
}

/* Checks that a query for a window of start times, which reads two ranges, finds as many calls as a full
 * scan. */
static void check_window(uint64_t from_ns, uint64_t to_ns)
{
    char sql[512];
    snprintf(sql, sizeof(sql),
             "SELECT count(*) || '' FROM calls WHERE start_ns BETWEEN %llu AND %llu AND (call_id BETWEEN "
             "%llu AND %llu OR "
             "call_id IN (SELECT call_id FROM long_calls WHERE start_ns BETWEEN %llu AND %llu))",
             (unsigned long long)from_ns, (unsigned long long)to_ns, (unsigned long long)from_ns,
             (unsigned long long)to_ns + 100000000, (unsigned long long)from_ns, (unsigned long long)to_ns);
    const long long found = ask(sql);
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM call WHERE end_ns - duration_ns BETWEEN %llu AND %llu",
             (unsigned long long)from_ns, (unsigned long long)to_ns);
    equal("calls that began in a window", found, ask(sql));
}

enum { CALLS = 1000 };

/* Stores calls at intervals of a millisecond, the first of them ten seconds ago. Some of the calls are long,
 * and one call lasts a minute. Then stores late calls. */
static void store_first(uint64_t base_ns)
{
    static uint64_t call[CALLS][2];
    for (uint64_t i = 0; i < CALLS; i++) {
        call[i][0] = base_ns + i * 1000000;
        call[i][1] = i == 700 ? 60 * SECOND : i % 50 == 0 ? 100000000 + i % 100 : 1000 + i;
    }
    store_calls((const uint64_t(*)[2])call, CALLS);
    const uint64_t late[][2] = {
        { base_ns + 500, 10 },               /* before all calls but the first one */
        { base_ns + 300 * 1000000, 20 },     /* at the same time as another call */
        { base_ns + 300 * 1000000, 30 },     /* again at that time */
        { base_ns + 400500000, 2 * SECOND }, /* late and long */
    };
    for (size_t i = 0; i < sizeof(late) / sizeof(late[0]); i++)
        store_calls(&late[i], 1);
    equal("late calls", ask("SELECT count(*) FROM late_call"), 4);
    check_counts();
    check_window(0, INT64_MAX / 2);
    for (uint64_t at = base_ns - 61 * SECOND; at < base_ns + 2 * SECOND; at += 333333333) {
        check_window(at, at);
        check_window(at, at + 1000000);
        check_window(at, at + SECOND);
    }
    check_window(base_ns + 700000000 - 60 * SECOND, base_ns + 700000000 - 60 * SECOND);
}

static uint64_t now_ns; /* the current time as passed to the store */

static struct ct_expired expire(uint64_t before_ns, uint64_t rows_max)
{
    struct ct_expired expired;
    equal("taking away", ct_store_expire(store, now_ns, before_ns, rows_max, &expired), 0);
    check_counts();
    return expired;
}

static void defer_allocation(int64_t call_id, int64_t process, int64_t address)
{
    ct_store_defer(store, CT_SQL_insert_allocation, CT_VALUES(call_id, process, address, 64, CT_NULL),
                   "device");
}

/* Stores three allocations: one held by a running process, one freed, and one held by a process that has
 * exited. */
static void store_allocations(uint64_t at_ns)
{
    const int64_t at = (int64_t)at_ns;
    const struct ct_process_facts facts = { .is.pid = 2, .exe = "", .cmdline = "", .segment = "ended" };
    int64_t ended_id, other_segment;
    equal("begin", ct_store_begin(store), 0);
    equal("a process", ct_store_process(store, &facts, &ended_id, &other_segment), 0);
    defer_allocation(at, process_id, 1000);
    defer_allocation(at + 1, process_id, 2000);
    ct_store_defer(store, CT_SQL_free_allocation,
                   CT_VALUES(process_id, 2000, at + 2, at + 2, 1, CT_FREE_SLACK_NS), "device");
    defer_allocation(at + 3, ended_id, 1000);
    equal("its end",
          ct_store_ask(store, CT_SQL_end_process, CT_VALUES(ended_id, at + 4), CT_TEXTS("exited"), NULL), 0);
    equal("commit", ct_store_commit(store), 0);
    equal("allocations", ask("SELECT count(*) FROM allocations"), 3);
}

static void open_store(const char *path)
{
    char message[CT_MESSAGE_BYTES];
    const struct ct_process_facts facts = { .is.pid = 1, .exe = "", .cmdline = "", .segment = "first" };
    if (ct_store_open(path, "test", &store, message) != 0 || sqlite3_open(path, &reader) != SQLITE_OK) {
        fprintf(stderr, "%s\n", message);
        exit(EXIT_FAILURE);
    }
    equal("begin", ct_store_begin(store), 0);
    equal("a process", ct_store_process(store, &facts, &process_id, &segment_id), 0);
    equal("a function",
          ct_store_ask(store, CT_SQL_insert_function, 0, NULL, CT_TEXTS("driver", "cuLaunchKernel", "launch"),
                       &function_id),
          0);
    thread_id = ct_store_thread(store, process_id, 1, "");
    account.process_id = process_id;
    function.function_id = function_id;
    thread.thread_id = thread_id;
    equal("a lane", ct_store_do(store, CT_SQL_save_lane, CT_VALUES(segment_id, 0, 0, thread_id)), 0);
    equal("commit", ct_store_commit(store), 0);
}

/* A call whose time is ahead of the clock must keep its site, even if numbering restarts before that time. */
static void check_ahead(void)
{
    uint64_t ahead[][2] = { { ct_monotonic_ns() + SECOND, 5 } };
    store_calls((const uint64_t(*)[2])ahead, 1);
    for (int sweep = 0; sweep < 3; sweep++) {
        now_ns += SECOND;
        expire(ahead[0][0], 1 << 20);
        equal("a call from ahead is shown", ask("SELECT count(*) FROM calls"), 1);
    }
}

/* Stores a call whose fields are a number and a string. */
static void store_fields(uint64_t end_ns, const char *name, const char *text)
{
    uint8_t payload[CT_FIELDS_BYTES_MAX];
    const struct ct_field field[] = { { .name = "bytes", .value = 5 },
                                      { .name = name, .text = text, .type = CT_FIELD_TEXT } };
    const struct ct_call taken = { .end_ns = end_ns,
                                   .caller = &thread,
                                   .callee = &function,
                                   .payload = payload,
                                   .payload_bytes = (uint16_t)ct_fields_write(payload, field, 2),
                                   .kind = CT_KIND_FIELDS };
    equal("begin", ct_store_begin(store), 0);
    ct_store_call(store, &taken);
    equal("commit", ct_store_commit(store), 0);
}

static long long count_fields(const char *name, const char *text)
{
    char sql[256];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM hooks WHERE fields = '{\"bytes\":5,\"%s\":\"%s\"}'",
             name, text);
    return ask(sql);
}

/* The fields of a call are removed together with the call. The names and strings of fields are removed once
 * no call uses them. */
static void check_fields(void)
{
    struct ct_expired expired;
    const uint64_t at_ns = store->calls.last_id + SECOND;
    store_fields(at_ns, "name", "a");
    store_fields(at_ns + 1, "name", "b");
    store_fields(at_ns + 2, "other", "b");
    equal("fields", count_fields("name", "a") + count_fields("name", "b") + count_fields("other", "b"), 3);
    equal("sets of fields", ask("SELECT count(DISTINCT field_set_id) FROM field"), 2);
    equal("their names", ask("SELECT count(*) FROM field"), 4);
    now_ns += SECOND;
    equal("expiry", ct_store_expire(store, now_ns, at_ns + 1, 1 << 20, &expired), 0);
    equal("calls with fields that are kept", ask("SELECT count(*) FROM hook_call"), 2);
    equal("their fields", count_fields("name", "b") + count_fields("other", "b"), 2);
    now_ns += SECOND;
    equal("expiry", ct_store_expire(store, now_ns, at_ns + SECOND, 1 << 20, &expired), 0);
    equal("fields left", ask("SELECT (SELECT count(*) FROM hook_call) + (SELECT count(*) FROM field)"), 0);
    equal("texts left", ask("SELECT count(*) FROM text"), 0);
    store_fields(at_ns + SECOND, "name", "b");
    equal("fields after the numbers have restarted", count_fields("name", "b"), 1);
}

int main(void)
{
    char folder[] = "/tmp/cudatrace-store.XXXXXX", path[64], side[80];
    if (!mkdtemp(folder))
        return EXIT_FAILURE;
    snprintf(path, sizeof(path), "%s/trace.db", folder);
    open_store(path);
    now_ns = ct_monotonic_ns();
    const uint64_t base_ns = ct_monotonic_ns() - 10 * SECOND, middle_ns = base_ns + 500 * 1000000;
    store_allocations(base_ns);
    store_first(base_ns);

    /* Remove calls older than the limit in pieces. */
    struct ct_expired expired = expire(middle_ns, 100);
    equal("the first piece", (long long)expired.rows, 100);
    equal("more is to go", expired.more, 1);
    while (expired.more)
        expired = expire(middle_ns, 100);
    equal("gone", ask("SELECT sum(expired) FROM totals"), 504);
    equal("the oldest", ask("SELECT min(call_id) FROM calls"), (long long)middle_ns);
    equal("memory that is held",
          ask("SELECT count(*) FROM allocations WHERE address = 1000 AND freed_ns IS NULL"), 1);
    equal("all memory", ask("SELECT count(*) FROM allocations"), 1);
    equal("nothing is due", (long long)expire(middle_ns, 100).rows, 0);

    /* A late call that is older than the limit is first stored and then removed. */
    const uint64_t late[][2] = { { base_ns + 1000, SECOND } };
    const int64_t site = store_calls(late, 1);
    equal("a late one", (long long)expire(middle_ns, 100).rows, 1);
    check_window(base_ns - 100 * SECOND, base_ns + 100 * SECOND);

    /* Numbering restarts once no older call is left, and the rows that use old numbers are then removed. The
     * thread's row remains, because the thread is still running. According to the time that is passed to the
     * store, sweeps are a second apart. */
    now_ns += SECOND;
    const uint32_t numbering = store->numbering;
    expire(ct_monotonic_ns(), 1 << 20);
    equal("numbers are void", store->numbering, numbering + 1);
    equal("calls left", ask("SELECT count(*) FROM call"), 0);
    const uint64_t after[][2] = { { ct_monotonic_ns(), 5 } };
    equal("a number behind the others", store_calls(after, 1) > site, 1);
    now_ns += SECOND;
    equal("a call is kept", (long long)expire(after[0][0], 1 << 20).rows, 0);
    equal("it is shown, at a site of its own", ask("SELECT count(*) FROM calls"), 1);
    equal("sites left", ask("SELECT count(*) FROM site"), 1);
    equal("threads left", ask("SELECT count(*) FROM thread"), 1);
    equal("processes", ask("SELECT count(*) FROM processes"), 2);
    check_counts();
    check_ahead();
    check_fields();

    sqlite3_close(reader);
    ct_store_close(store);
    for (int i = 0; i < 3; i++) {
        snprintf(side, sizeof(side), "%s%s", path, (const char *[]){ "", "-wal", "-shm" }[i]);
        unlink(side);
    }
    return rmdir(folder) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
