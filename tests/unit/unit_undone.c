/* Tests that if a batch fails at any step, it has no effect on the file or on memory. The next batch must
 * have the effect that the failed one would have had. */
#include "batch.h"
#include "clock.h"
#include "numbers.h"
#include "shm_drain.h"
#include "shm_lane.h"
#include "shm_source.h"
#include "statements.h"
#include "stored_calls.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[64];
static struct ct_store *store;
static sqlite3 *reader;
static bool is_memory_short;

/* The linker redirects realloc() to this function (--wrap). */
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes)
{
    return is_memory_short ? NULL : __real_realloc(memory, bytes);
}

static void equal(const char *what, long long seen, long long wanted)
{
    if (seen == wanted)
        return;
    fprintf(stderr, "%s: %lld, and should be %lld; %s\n", what, seen, wanted, ct_store_error(store));
    exit(EXIT_FAILURE);
}

static long long ask(const char *sql)
{
    sqlite3_stmt *statement;
    equal(sql, sqlite3_prepare_v2(reader, sql, -1, &statement, NULL), SQLITE_OK);
    equal(sql, sqlite3_step(statement), SQLITE_ROW);
    const long long value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

/* Prevents all files from growing, so that a commit fails. */
static void fill_disk(bool is_full)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = is_full ? 0 : limit.rlim_max;
    equal("a limit", setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* ---- late rows are counted only when they have been stored ---- */

static void put_call(uint64_t end_ns)
{
    static struct ct_account account;
    static struct ct_caller thread = { .account = &account, .thread_id = 1 };
    static struct ct_callee function = { .function_id = 1 };
    equal("begin", ct_store_begin(store), 0);
    ct_store_call(store, &(struct ct_call){ .end_ns = end_ns,
                                            .duration_ns = 1,
                                            .caller = &thread,
                                            .callee = &function,
                                            .kind = CT_KIND_CALL });
}

static void check_late_rows(void)
{
    put_call(ct_monotonic_ns());
    equal("commit", ct_store_commit(store), 0);
    put_call(1000);
    fill_disk(true);
    equal("commit on a full disk", ct_store_commit(store), -1);
    fill_disk(false);
    ct_store_rollback(store);
    equal("late rows that were not stored", (long long)ct_store_late_rows(store), 0);
    put_call(1000);
    equal("commit", ct_store_commit(store), 0);
    equal("late rows", (long long)ct_store_late_rows(store), ask("SELECT count(*) FROM late_call"));
    equal("late rows", (long long)ct_store_late_rows(store), 1);
}

/* ---- a batch fails if there is no memory for a row, even if the batch contains no calls ---- */

static void check_memory(int64_t process_id)
{
    enum { THREADS = 10000 }; /* more than the buffer can hold unless it grows */
    equal("begin", ct_store_begin(store), 0);
    is_memory_short = true;
    for (uint32_t tid = 1; tid <= THREADS; tid++)
        ct_store_thread(store, process_id, tid, "a thread of that name");
    is_memory_short = false;
    equal("commit without memory", ct_store_commit(store), -1);
    ct_store_rollback(store);
    equal("threads", ask("SELECT count(*) FROM thread"), 0);
    equal("begin", ct_store_begin(store), 0);
    ct_store_thread(store, process_id, 1, "");
    equal("commit", ct_store_commit(store), 0);
    equal("threads", ask("SELECT count(*) FROM thread"), 1);
}

/* ---- a batch that is committed in another thread while the next one is made ---- */

static void check_commit_beside(void)
{
    const uint64_t now_ns = ct_monotonic_ns();
    const long long before = ask("SELECT count(*) FROM call");
    const uint32_t generation = ct_store_generation(store);
    equal("without a thread", ct_store_may_commit_start(store), false);
    ct_store_commit_by_thread(store);
    put_call(now_ns);
    equal("may be committed so", ct_store_may_commit_start(store), true);
    equal("start", ct_store_commit_start(store), 0);
    put_call(now_ns + 1);
    equal("start behind it", ct_store_commit_start(store), 0);
    put_call(now_ns + 2);
    equal("commit", ct_store_commit(store), 0);
    equal("is done", ct_store_commit_is_done(store), true);
    equal("calls", ask("SELECT count(*) FROM call"), before + 3);

    /* If a batch cannot be committed, neither that batch nor the next one is stored. */
    put_call(now_ns + 3);
    fill_disk(true);
    equal("start", ct_store_commit_start(store), 0);
    put_call(now_ns + 4);
    equal("wait", ct_store_commit_wait(store), -1);
    fill_disk(false);
    equal("commit behind a failure", ct_store_commit(store), -1);
    equal("the reason", strstr(ct_store_error(store), "cannot write database") != NULL, true);
    ct_store_rollback(store);
    equal("calls", ask("SELECT count(*) FROM call"), before + 3);
    equal("generation", ct_store_generation(store), generation + 1);

    /* If a batch cannot begin because another connection holds the lock, the batch is aborted, even if the
     * lock is released soon afterwards. */
    put_call(now_ns + 3);
    equal("start", ct_store_commit_start(store), 0);
    put_call(now_ns + 4);
    equal("wait", ct_store_commit_wait(store), 0);
    equal("a lock", sqlite3_exec(reader, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    equal("a transaction", ct_store_need_transaction(store), -1);
    equal("no lock", sqlite3_exec(reader, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    equal("a transaction behind that", ct_store_need_transaction(store), -1);
    equal("commit", ct_store_commit(store), -1);
    ct_store_rollback(store);
    equal("calls", ask("SELECT count(*) FROM call"), before + 4);

    /* A late call must also be looked up in the batch that is being committed. */
    put_call(now_ns + 5);
    equal("start", ct_store_commit_start(store), 0);
    put_call(now_ns + 5);
    put_call(now_ns + 1);
    equal("not with a late one", ct_store_may_commit_start(store), false);
    equal("commit", ct_store_commit(store), 0);
    equal("calls", ask("SELECT count(*) FROM call"), before + 7);
}

static bool has_call(struct ct_stream *stream, uint64_t until_ns)
{
    return stream->next && stream->next->end_ns <= until_ns;
}

/* If a merge cannot allocate memory for its streams, it returns an error, and sets the message "out of
 * memory". */
static void check_merge(void)
{
    static struct ct_segment segment;
    static struct ct_call call = { .kind = CT_KIND_CALL };
    struct ct_lane_source lane = { .stream = { .fill = has_call, .next = &call, .end = &call } };
    struct ct_lane_source *lanes[] = { &lane };
    struct ct_shm_process process = { .shared = &segment, .lanes = lanes, .lane_count = 1 };
    struct ct_ledger ledger = { .store = store };
    ct_merge_begin(&ledger.merge, UINT64_MAX);
    is_memory_short = true;
    equal("a merge without memory", ct_shm_add(&process, &ledger), -1);
    is_memory_short = false;
    equal("that is the reason", strcmp(ct_store_error(store), "out of memory"), 0);
}

/* ---- the end of a process that no source watches is written, even if that takes two batches ---- */

static enum ct_going ended(const struct ct_running *running, const void *data)
{
    (void)running, (void)data;
    return CT_GOING_ENDED;
}

static void check_orphans(void)
{
    static struct ct_control control = { .clock = CT_CLOCK_MONOTONIC };
    static struct ct_shm shm;
    struct ct_collection collection = { .ledger.store = store, .sources = &shm.source };
    const struct ct_request request = { .snapshot_open = true };
    struct ct_report report = { 0 };
    ct_shm_init(&shm, "/nowhere", &control);
    shm.orphans = true;
    fill_disk(true);
    ct_batch_make(&collection, &request, &report);
    fill_disk(false);
    equal("a batch on a full disk", report.error[0] != 0, true);
    equal("running", ask("SELECT count(*) FROM process WHERE state = 'running'"), 1);

    /* Rename a table, so that the list of running processes cannot be read. */
    equal("away", sqlite3_exec(reader, "ALTER TABLE process RENAME TO away", NULL, NULL, NULL), SQLITE_OK);
    equal("ending nobody knows whom", ct_ledger_end_orphans(&collection.ledger, 1, 1, ended, NULL, NULL), -1);
    equal("back", sqlite3_exec(reader, "ALTER TABLE away RENAME TO process", NULL, NULL, NULL), SQLITE_OK);

    report = (struct ct_report){ 0 };
    ct_batch_make(&collection, &request, &report);
    equal("a batch", report.error[0], 0);
    equal("running", ask("SELECT count(*) FROM process WHERE state = 'running'"), 0);
    equal("nobody else is looked for", shm.orphans, false);
    ct_ledger_finish(&collection.ledger);
}

/* An error with one file's log must not be reported for the next file. */
static void check_next_file(void)
{
    put_call(ct_monotonic_ns());
    equal("commit", ct_store_commit(store), 0);
    fill_disk(true);
    equal("a log that cannot be copied", ct_store_checkpoint(store), false);
    fill_disk(false);
    equal("is one", ct_store_checkpoint_error(store) != NULL, true);
    equal("the next file", ct_store_go_on(store), 0);
    equal("has none", ct_store_checkpoint_error(store) == NULL, true);
}

/* Returns the pid of a process that has exited. */
static int32_t pid_of_nobody(void)
{
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    return child;
}

int main(void)
{
    char folder[] = "/tmp/cudatrace-undone.XXXXXX", message[CT_MESSAGE_BYTES];
    const struct ct_process_facts facts = {
        .is.pid = pid_of_nobody(), .is.start_ticks = 1, .exe = "", .cmdline = "", .segment = "first"
    };
    int64_t process_id, segment_id;
    signal(SIGXFSZ, SIG_IGN);
    if (!mkdtemp(folder))
        return EXIT_FAILURE;
    snprintf(path, sizeof(path), "%s/trace.db", folder);
    if (ct_store_open(path, "test", &store, message) != 0 || sqlite3_open(path, &reader) != SQLITE_OK) {
        fprintf(stderr, "%s\n", message);
        return EXIT_FAILURE;
    }
    equal("begin", ct_store_begin(store), 0);
    equal("a process", ct_store_process(store, &facts, &process_id, &segment_id), 0);
    equal("commit", ct_store_commit(store), 0);
    check_late_rows();
    check_merge();
    check_memory(process_id);
    check_commit_beside();
    check_orphans();
    check_next_file();

    sqlite3_close(reader);
    ct_store_close(store);
    for (int i = 0; i < 4; i++) {
        char file[80];
        snprintf(file, sizeof(file), "%s/%s", folder,
                 (const char *[]){ "trace.db", "trace.db-wal", "trace.db-shm", "trace.2.db" }[i]);
        unlink(file);
    }
    return rmdir(folder) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
