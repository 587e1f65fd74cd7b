/* Tests that a reader that follows a trace receives each call exactly once. Between two reads, the store may
 * add calls (some of them late), begin the next file, or remove old calls. */
#include "account.h"
#include "clock.h"
#include "expire.h"
#include "follow.h"
#include "numbers.h"
#include "process_rows.h"
#include "statements.h"
#include "store.h"
#include "stored_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 600, CALLS_MAX = 1 << 16, BATCH_MAX = 40, MANY = 30000 };

static char folder[] = "/tmp/cudatrace-follow.XXXXXX", path[64];
static struct ct_store *store;
static struct ct_follow *follow;
static int64_t process_id, segment_id, function_id, thread_id;
static uint64_t now_ns;
static int64_t newest; /* call_id of the newest call */

/* All stored calls, and how many times each has been returned. */
static struct {
    int64_t call_id;
    int given;
} call[CALLS_MAX];
static size_t calls, given, late;

static void expect(const char *what, bool is_so)
{
    if (is_so)
        return;
    fprintf(stderr, "%s: %zu calls, %zu given; %s\n", what, calls, given, ct_store_error(store));
    exit(EXIT_FAILURE);
}

static uint32_t draw(uint32_t below)
{
    static uint64_t state = 20261124;
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 33) % below;
}

static void open_store(void)
{
    char message[CT_MESSAGE_BYTES] = "";
    const struct ct_process_facts facts = { .is.pid = 1, .exe = "", .cmdline = "", .segment = "first" };
    expect("a folder", mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/trace.2026.db", folder); /* the name of the first file contains a
                                                               * number */
    expect(message, ct_store_open(path, "test", &store, message) == 0);
    expect("begin",
           ct_store_begin(store) == 0 && ct_store_process(store, &facts, &process_id, &segment_id) == 0);
    expect("a function", ct_store_ask(store, CT_SQL_insert_function, 0, NULL,
                                      CT_TEXTS("driver", "cuInit", "init"), &function_id) == 0);
    thread_id = ct_store_thread(store, process_id, 1, "");
    expect("a lane", ct_store_do(store, CT_SQL_save_lane, CT_VALUES(segment_id, 0, 0, thread_id)) == 0);
    expect("commit", ct_store_commit(store) == 0);
}

/* Stores a batch of calls that are a microsecond apart. Some of the calls are late, by at most two
 * milliseconds. */
static void store_batch(uint32_t count)
{
    expect("begin", ct_store_begin(store) == 0);
    struct ct_account account = { .process_id = process_id };
    struct ct_caller caller = { .account = &account, .thread_id = thread_id };
    struct ct_callee callee = { .function_id = function_id };
    struct ct_call taken = { .caller = &caller,
                             .callee = &callee,
                             .duration_ns = 5,
                             .kind = CT_KIND_CALL,
                             .depth = (uint8_t)draw(3) };
    for (uint32_t i = 0; i < count; i++) {
        const bool is_late = calls > 10 && draw(10) == 0;
        now_ns += is_late ? 0 : 1000;
        taken.end_ns = is_late ? now_ns - draw(2000000) : now_ns;
        const int64_t call_id = call[calls++].call_id = ct_store_call(store, &taken);
        late += call_id < newest;
        newest = call_id > newest ? call_id : newest;
    }
    free(caller.known);
    expect("sums", ct_store_do(store, CT_SQL_add_total,
                               CT_VALUES(process_id, function_id, count, 0, 1, 1, 0, 0)) == 0);
    expect("commit", ct_store_commit(store) == 0);
}

static void take(const struct ct_stream_call *had)
{
    for (size_t i = calls; i-- > 0;) {
        if (call[i].call_id != had->id)
            continue;
        expect("a call comes once", call[i].given++ == 0);
        expect("it is its function's", strcmp(had->site.name, "cuInit") == 0);
        given++;
        return;
    }
    expect("a call that was stored", false);
}

/* Reads at most `most` calls. Returns whether there are more. */
static bool look(uint32_t most)
{
    struct ct_stream_call had;
    expect("a look", ct_follow_look(follow));
    while (most-- > 0 && ct_follow_next(follow, &had))
        take(&had);
    const bool more = ct_follow_rest(follow);
    expect("a trace that can be read", ct_follow_problem(follow) == NULL);
    return more;
}

static void look_at_all(void)
{
    expect("news, where there are any", given == calls || ct_follow_has_news(follow));
    ct_follow_hurry(follow);
    while (look(UINT32_MAX))
        ;
    expect("all calls were given", given == calls);
}

static struct ct_follow *begin(enum ct_follow_start start, int64_t last)
{
    static struct ct_series series;
    sqlite3 *connection = NULL;
    const struct ct_follow_plan plan = { .scope = ct_scope_all(), .start = start, .last = last };
    expect("a trace", ct_series_find(path, &series) && ct_series_open(&series, &connection) == SQLITE_OK);
    struct ct_follow *begun = ct_follow_begin(connection, &series, &plan);
    expect("it is followed", begun != NULL);
    return begun;
}

/* Checks that exactly the last `count` calls are returned. */
static void check_last(size_t count)
{
    struct ct_stream_call had;
    size_t seen = 0;
    struct ct_follow *other = begin(CT_FOLLOW_LAST, (int64_t)count);
    bool more = true;
    while (more) {
        expect("a look", ct_follow_look(other));
        while (ct_follow_next(other, &had))
            seen++;
        more = ct_follow_rest(other);
    }
    expect("the last ones", seen == count);
    ct_follow_end(other);
}

static void remove_all(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    expect("removed", system(command) == 0);
}

int main(void)
{
    open_store();
    now_ns = ct_monotonic_ns() - UINT64_C(10000000000);
    store_batch(5);
    for (size_t i = 0; i < calls; i++) /* earlier calls */
        call[i].given = 1;
    given = calls;
    follow = begin(CT_FOLLOW_NOW, 0);
    expect("nothing from before", !look(UINT32_MAX) && given == calls);

    uint32_t files = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const uint32_t what = draw(20);
        struct ct_expired expired;
        if (what < 12)
            store_batch(1 + draw(BATCH_MAX));
        else if (what < 18)
            look(draw(2) ? UINT32_MAX : draw(BATCH_MAX));
        else if (what == 18 && files < 6)
            files += ct_store_go_on(store) == 0;
        else if (what == 19) {
            look_at_all();
            expect("nothing was missed", !ct_follow_has_missed(follow));
            expect("taken away", ct_store_expire(store, now_ns + UINT64_C(2000000000) * (uint64_t)round,
                                                 now_ns - 1000000, 100, &expired) == 0);
        }
    }
    look_at_all();
    expect("files", files > 2 && ct_follow_files(follow) == files);
    expect("late calls", late > 100);
    check_last(0);
    check_last(1);
    check_last(100);

    /* Store more calls than a single read returns. */
    for (int i = 0; i < MANY / BATCH_MAX; i++)
        store_batch(BATCH_MAX);
    expect("a look has an end", look(UINT32_MAX));
    look_at_all();
    check_last(MANY);
    ct_follow_end(follow);
    ct_store_close(store);
    remove_all();
    return EXIT_SUCCESS;
}
