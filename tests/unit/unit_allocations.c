/* Tests which call frees which allocation when an address is reused immediately. The result depends on when
 * the calls started and returned, and not on when their records arrive. Also counts the work. */
#include "deferred.h"
#include "process_rows.h"
#include "store.h"
#include "store_state.h"
#include "stored_calls.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "a10" is an allocation at 10. "f20-40" is a call from 20 to 40 that frees the memory. "l" means that the
 * following records arrive late. "?1" means one free of unknown memory. Times are in milliseconds. */
static const struct {
    const char *what, *events, *wanted;
} cases[] = {
    { "one after the other", "a10 f20-30 a40 f50-60", "10:30 40:60" },
    { "got again before the first call returns", "a10 a25 f20-40 f50-60", "10:40 25:60" },
    { "and given back, too", "a10 a25 f35-38 f20-40", "10:40 25:38" },
    { "three at once", "a10 a25 f26-29 a28 f20-40 f50-60", "10:40 25:29 28:60" },
    { "a call that was lost", "a10 a40 f50-60", "10:40 40:60" },
    { "an allocation that was lost", "a10 f20-30 f50-60", "10:30 ?1" },
    { "the first allocation was lost", "a30 f20-40 f50-60", "30:60 ?1" },
    { "an allocation comes behind its free", "f20-30 l a10", "10:30" },
    { "behind a younger one", "a40 l a10 f50-60", "10:40 40:60" },
    { "behind its free and a younger one", "f20-30 a40 l a10 f50-60", "10:30 40:60" },
    { "a free comes late", "a10 a25 f50-60 l f20-40", "10:40 25:60" },
    { "three that come in the wrong order", "a40 l a30 a10 f35-38 f15-20 f50-60", "10:20 30:38 40:60" },
    { "the frees of three come last", "a10 a20 a30 f40-50 l f25-45 f15-42", "10:42 20:45 30:50" },
    { "still held", "a10 f20-30 a40", "10:30 40:0" },
};

static struct ct_store *store;

static void allocate(int64_t process_id, int64_t address, int64_t at_ns, const char *kind)
{
    ct_store_defer(store, CT_SQL_supersede_allocation, CT_VALUES(process_id, address, at_ns), kind);
    ct_store_defer(store, CT_SQL_insert_allocation, CT_VALUES(at_ns, process_id, address, 64, CT_NULL), kind);
}

static void defer(char kind, int64_t process_id, int64_t address, int64_t from_ns, int64_t to_ns,
                  bool is_late)
{
    if (kind == 'f') {
        ct_store_defer(store, CT_SQL_free_allocation,
                       CT_VALUES(process_id, address, from_ns, to_ns, 1, CT_FREE_SLACK_NS), "device");
        return;
    }
    allocate(process_id, address, from_ns, "device");
    if (is_late)
        ct_store_defer(store, CT_SQL_supersede_late_allocation, CT_VALUES(process_id, address, from_ns),
                       "device");
}

/* Makes either one batch for each event, or a single batch for all events. Rolling back a batch must not
 * affect any other state. */
static void play(const char *events, int64_t process_id, int64_t base_ns, bool at_once)
{
    char text[128];
    bool is_late = false;
    snprintf(text, sizeof(text), "%s", events);
    if (at_once && ct_store_begin(store) != 0)
        abort();
    for (char *rest = text, *event; (event = strsep(&rest, " ")) != NULL;) {
        long from = 0, to = 0;
        if (*event == 'l') {
            is_late = true;
            continue;
        }
        if (sscanf(event + 1, "%ld-%ld", &from, &to) < 1 || (!at_once && ct_store_begin(store) != 0))
            abort();
        defer(*event, process_id, 4096, base_ns + from * 1000000, base_ns + to * 1000000, is_late);
        if (!at_once && ct_store_commit(store) != 0)
            abort();
    }
    if (at_once && ct_store_commit(store) != 0)
        abort();
}

static void add_process(sqlite3 *writer, int64_t process_id)
{
    char sql[160];
    snprintf(sql, sizeof(sql),
             "INSERT INTO process (process_id, pid, start_ticks, image_ns, uid, started_ns, state) "
             "VALUES (%lld, %lld, 0, 0, 0, 0, 'running')",
             (long long)process_id, (long long)process_id);
    if (sqlite3_exec(writer, sql, NULL, NULL, NULL) != SQLITE_OK)
        abort();
}

static long long unknown_frees(sqlite3 *reader, int64_t process_id)
{
    sqlite3_stmt *statement;
    sqlite3_prepare_v2(reader, "SELECT unknown_frees FROM processes WHERE process_id = ?1", -1, &statement,
                       NULL);
    sqlite3_bind_int64(statement, 1, process_id);
    const long long count = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : -1;
    sqlite3_finalize(statement);
    return count;
}

static bool check(sqlite3 *reader, size_t i, int64_t process_id, int64_t base_ns)
{
    char seen[256] = "";
    sqlite3_stmt *statement;
    sqlite3_prepare_v2(reader,
                       "SELECT allocated_ns, freed_ns FROM allocations WHERE process_id = ?1 ORDER BY 1", -1,
                       &statement, NULL);
    sqlite3_bind_int64(statement, 1, process_id);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        const int64_t freed_ns = sqlite3_column_int64(statement, 1);
        snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%s%lld:%lld", *seen ? " " : "",
                 (long long)(sqlite3_column_int64(statement, 0) - base_ns) / 1000000,
                 freed_ns ? (long long)(freed_ns - base_ns) / 1000000 : 0);
    }
    sqlite3_finalize(statement);
    const long long unknown = unknown_frees(reader, process_id);
    if (unknown != 0)
        snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), " ?%lld", unknown);
    if (strcmp(seen, cases[i].wanted) == 0)
        return true;
    fprintf(stderr, "%s: %s, and should be %s\n", cases[i].what, seen, cases[i].wanted);
    return false;
}

/* Returns the steps of SQLite's virtual machine in all statements since the last call of this function. */
static long long steps_taken(void)
{
    long long steps = 0;
    for (int i = 0; i < CT_SQL_COUNT; i++)
        steps += sqlite3_stmt_status(store->statement[i], SQLITE_STMTSTATUS_VM_STEP, true);
    return steps;
}

/* Allocates an address again and again without recording the frees. Then makes the given number of rounds at
 * this address, in which an allocation is freed, unknown memory is freed, an allocation comes late, and the
 * range around the address is freed. Returns the steps of the rounds. */
static long long steps_of(int64_t process_id, int unrecorded, int rounds, const char *kind)
{
    enum { ROUND_NS = 1000000, ADDRESS = 4096 };
    int64_t at_ns = process_id * 1000000000000;
    if (ct_store_begin(store) != 0)
        abort();
    for (int i = 0; i < unrecorded + rounds; i++, at_ns += ROUND_NS) {
        if (i == unrecorded &&
            (ct_store_commit(store) != 0 || steps_taken() < 0 || ct_store_begin(store) != 0))
            abort();
        allocate(process_id, ADDRESS, at_ns, kind);
        if (i < unrecorded)
            continue;
        for (int64_t from_ns = at_ns + ROUND_NS / 2; from_ns < at_ns + ROUND_NS; from_ns += ROUND_NS / 8)
            ct_store_defer(store, CT_SQL_free_allocation,
                           CT_VALUES(process_id, ADDRESS, from_ns, from_ns + 1000, 1, CT_FREE_SLACK_NS),
                           kind);
        ct_store_defer(store, CT_SQL_free_allocation,
                       CT_VALUES(process_id, 0, at_ns + ROUND_NS / 2, at_ns + ROUND_NS / 2 + 2000,
                                 2 * ADDRESS, CT_FREE_SLACK_NS),
                       kind);
        const int64_t late_ns = process_id * 1000000000000 + i * (ROUND_NS / 4) + 1;
        ct_store_defer(store, CT_SQL_supersede_allocation, CT_VALUES(process_id, ADDRESS, late_ns), kind);
        ct_store_defer(store, CT_SQL_insert_allocation, CT_VALUES(late_ns, process_id, ADDRESS, 64, CT_NULL),
                       kind);
        ct_store_defer(store, CT_SQL_supersede_late_allocation, CT_VALUES(process_id, ADDRESS, late_ns),
                       kind);
    }
    if (ct_store_commit(store) != 0)
        abort();
    return steps_taken();
}

/* The work for a call must not depend on how many frees at its address were not recorded. */
static bool check_work(sqlite3 *writer, int64_t process_id)
{
    enum { FEW = 100, MANY = 3000, ROUNDS = 20 };
    bool fine = true;
    for (int i = 0; i < 2; i++) {
        const char *kind = i == 0 ? "device" : "mapped";
        add_process(writer, process_id);
        add_process(writer, process_id + 1);
        const long long few = steps_of(process_id++, FEW, ROUNDS, kind);
        const long long many = steps_of(process_id++, MANY, ROUNDS, kind);
        fine &= few > 0 && many < few + few / 10;
        if (!fine)
            fprintf(stderr, "%s: %lld steps after %d frees without records, but %lld after %d\n", kind, few,
                    FEW, many, MANY);
    }
    return fine;
}

/* Reserves a range that is mapped in many pieces, and unmaps the whole range. The reservation's record is
 * late, and the range must stay reserved. */
static bool check_range(sqlite3 *writer, int64_t process_id)
{
    enum { PIECES = 100, PIECE_BYTES = 64, ADDRESS = 4096 };
    const int64_t base_ns = process_id * 1000000000000;
    sqlite3_stmt *statement;
    add_process(writer, process_id);
    if (ct_store_begin(store) != 0)
        abort();
    for (int i = 0; i < PIECES; i++)
        allocate(process_id, ADDRESS + i * PIECE_BYTES, base_ns + 1 + i, "mapped");
    allocate(process_id, ADDRESS, base_ns, "reserved");
    ct_store_defer(store, CT_SQL_supersede_late_allocation, CT_VALUES(process_id, ADDRESS, base_ns),
                   "reserved");
    ct_store_defer(store, CT_SQL_free_allocation,
                   CT_VALUES(process_id, ADDRESS, base_ns + 1000000, base_ns + 2000000, PIECES * PIECE_BYTES,
                             CT_FREE_SLACK_NS),
                   "mapped");
    if (ct_store_commit(store) != 0)
        abort();
    sqlite3_prepare_v2(writer,
                       "SELECT count(*) FILTER (WHERE kind = 'mapped' AND freed_ns IS NOT NULL), "
                       "count(*) FILTER (WHERE kind = 'reserved' AND freed_ns IS NULL) "
                       "FROM allocations WHERE process_id = ?1",
                       -1, &statement, NULL);
    sqlite3_bind_int64(statement, 1, process_id);
    const bool fine = sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_int(statement, 0) == PIECES &&
                      sqlite3_column_int(statement, 1) == 1;
    if (!fine)
        fprintf(stderr, "of %d pieces, %d were unmapped; of one range, %d is reserved\n", PIECES,
                sqlite3_column_int(statement, 0), sqlite3_column_int(statement, 1));
    sqlite3_finalize(statement);
    return fine;
}

int main(void)
{
    char folder[] = "/tmp/cudatrace-allocations.XXXXXX", path[64], side[80], message[CT_MESSAGE_BYTES];
    sqlite3 *reader;
    bool fine = true;
    if (!mkdtemp(folder))
        return EXIT_FAILURE;
    snprintf(path, sizeof(path), "%s/trace.db", folder);
    if (ct_store_open(path, "test", &store, message) != 0 || sqlite3_open(path, &reader) != SQLITE_OK)
        return EXIT_FAILURE;
    int64_t id = 0;
    for (int at_once = 0; at_once < 2; at_once++) {
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            id++;
            add_process(reader, id);
            play(cases[i].events, id, id * 1000000000, at_once);
            fine &= check(reader, i, id, id * 1000000000);
        }
    }
    fine &= check_range(reader, id + 1);
    fine &= check_work(reader, id + 2);
    sqlite3_close(reader);
    ct_store_close(store);
    for (const char *const *end = (const char *[]){ "", "-wal", "-shm", NULL }; *end; end++) {
        snprintf(side, sizeof(side), "%s%s", path, *end);
        unlink(side);
    }
    rmdir(folder);
    return fine ? EXIT_SUCCESS : EXIT_FAILURE;
}
