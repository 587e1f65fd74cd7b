/* cudatrace export --format chrome: the Trace Event Format, as Perfetto and Chrome's viewer read it
 * (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU): a complete event ("X")
 * for each call, in microseconds since the trace began; names of processes and threads; arrows ("s", "f")
 * from runtime calls to the driver calls that they made; a counter ("C") of memory. The order of events does
 * not matter there. */
#include "export.h"

#include "schema_sql.h"

#include <stdlib.h>
#include <string.h>

/* Driver calls that wait for the call around them, by thread: inside of a range, which has no arrows, all
 * that it makes. Of more than these the oldest half go. */
enum { CHILDREN_MAX = 4096, THREAD_SLOTS_FIRST = 64 };

struct child {
    int64_t id, start_ns;
    int32_t depth;
};

struct thread {
    int64_t process_id, tid; /* process_id 0: an empty slot */
    struct child *child;
    uint32_t children, room;
};

struct track {
    int64_t process_id, track;
};

struct state {
    struct track *tracks; /* by process_id */
    size_t track_count;
    struct thread *threads; /* open addressing */
    size_t thread_count, thread_mask;
    bool another; /* an event was written */
};

static void begin_event(struct ct_export *to)
{
    struct state *state = to->state;
    fputs(state->another ? ",\n" : "\n", to->to);
    state->another = true;
}

static void print_us(struct ct_export *to, const char *name, int64_t ns)
{
    const int64_t positive = ns < 0 ? -ns : ns;
    fprintf(to->to, ",\"%s\":%s%lld.%03lld", name, ns < 0 ? "-" : "", (long long)(positive / 1000),
            (long long)(positive % 1000));
}

static int compare_tracks(const void *a, const void *b)
{
    const struct track *x = a, *y = b;
    return (x->process_id > y->process_id) - (x->process_id < y->process_id);
}

static int64_t track_of(const struct state *state, int64_t process_id)
{
    const struct track wanted = { .process_id = process_id };
    const struct track *found = state->track_count ? bsearch(&wanted, state->tracks, state->track_count,
                                                             sizeof(wanted), compare_tracks)
                                                   : NULL;
    return found ? found->track : 1000000000 + process_id;
}

/* A query of schema/exports.sql with what is streamed bound; NULL after SQLite failed. */
static sqlite3_stmt *ask(struct ct_export *to, const char *sql)
{
    sqlite3_stmt *rows = NULL;
    if (sqlite3_prepare_v2(to->connection, sql, -1, &rows, NULL) != SQLITE_OK)
        return NULL;
    sqlite3_bind_int64(rows, 1, to->choice.pid);
    sqlite3_bind_int64(rows, 2, to->choice.from_ns);
    sqlite3_bind_int64(rows, 3, to->choice.to_ns);
    return rows;
}

static void print_text(struct ct_export *to, sqlite3_stmt *rows, int column)
{
    const char *text = (const char *)sqlite3_column_text(rows, column);
    ct_print_json_string(text ? text : "", text ? (size_t)sqlite3_column_bytes(rows, column) : 0, to->to);
}

static bool name_processes(struct ct_export *to, struct state *state)
{
    sqlite3_stmt *rows = ask(to, ct_sql_exports_chrome_processes);
    int rc = rows ? SQLITE_OK : SQLITE_ERROR;
    while (rows && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        struct track *tracks = realloc(state->tracks, (state->track_count + 1) * sizeof(*tracks));
        if (!tracks)
            break;
        state->tracks = tracks;
        tracks[state->track_count++] = (struct track){ .process_id = sqlite3_column_int64(rows, 0),
                                                       .track = sqlite3_column_int64(rows, 1) };
        begin_event(to);
        fprintf(to->to, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%lld,\"args\":{\"name\":",
                (long long)sqlite3_column_int64(rows, 1));
        print_text(to, rows, 2);
        fputs("}}", to->to);
    }
    sqlite3_finalize(rows);
    if (state->track_count)
        qsort(state->tracks, state->track_count, sizeof(*state->tracks), compare_tracks);
    return rc == SQLITE_DONE;
}

static bool name_threads(struct ct_export *to, struct state *state)
{
    sqlite3_stmt *rows = ask(to, ct_sql_exports_chrome_threads);
    int rc = rows ? SQLITE_OK : SQLITE_ERROR;
    while (rows && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        begin_event(to);
        fprintf(to->to,
                "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%lld,\"tid\":%lld,\"args\":{\"name\":",
                (long long)track_of(state, sqlite3_column_int64(rows, 0)),
                (long long)sqlite3_column_int64(rows, 1));
        print_text(to, rows, 2);
        fputs("}}", to->to);
    }
    sqlite3_finalize(rows);
    return rc == SQLITE_DONE;
}

static bool begin(struct ct_export *to)
{
    struct state *state = to->state = calloc(1, sizeof(*state));
    if (!state)
        return false;
    fprintf(
        to->to,
        "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"version\":\"cudatrace %s\",\"begin_monotonic_ns\":%lld,"
        "\"begin_unix_ns\":%lld},\"traceEvents\":[",
        CUDATRACE_VERSION, (long long)to->extent.begin_ns,
        (long long)(to->extent.begin_ns + to->extent.realtime_offset_ns));
    return name_processes(to, state) && name_threads(to, state);
}

/* ---- arrows ---- */

static struct thread *find_slot(const struct state *state, int64_t process_id, int64_t tid)
{
    uint64_t hash =
        ((uint64_t)process_id * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)tid) * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = hash >> 32;; i++) {
        struct thread *thread = &state->threads[i & state->thread_mask];
        if (thread->process_id == 0 || (thread->process_id == process_id && thread->tid == tid))
            return thread;
    }
}

static struct thread *thread_of(struct state *state, int64_t process_id, int64_t tid)
{
    if (!state->threads || 2 * state->thread_count >= state->thread_mask) {
        const size_t slots = state->threads ? 2 * (state->thread_mask + 1) : THREAD_SLOTS_FIRST;
        struct state grown = { .threads = calloc(slots, sizeof(*grown.threads)), .thread_mask = slots - 1 };
        if (!grown.threads)
            return NULL;
        for (size_t i = 0; state->threads && i <= state->thread_mask; i++) {
            if (state->threads[i].process_id)
                *find_slot(&grown, state->threads[i].process_id, state->threads[i].tid) = state->threads[i];
        }
        free(state->threads);
        state->threads = grown.threads;
        state->thread_mask = grown.thread_mask;
    }
    struct thread *thread = find_slot(state, process_id, tid);
    if (thread->process_id == 0) {
        thread->process_id = process_id;
        thread->tid = tid;
        state->thread_count++;
    }
    return thread;
}

/* From just before the driver's call, when the thread was in the runtime's, to it. */
static void print_arrow(struct ct_export *to, const struct ct_site *site, const struct child *child)
{
    const int64_t track = track_of(to->state, site->process_id),
                  at_ns = child->start_ns - to->extent.begin_ns;
    begin_event(to);
    fprintf(to->to, "{\"ph\":\"s\",\"id\":%lld,\"name\":\"call\",\"cat\":\"call\",\"pid\":%lld,\"tid\":%lld",
            (long long)child->id, (long long)track, (long long)site->tid);
    print_us(to, "ts", at_ns - 1);
    fputc('}', to->to);
    begin_event(to);
    fprintf(
        to->to,
        "{\"ph\":\"f\",\"bp\":\"e\",\"id\":%lld,\"name\":\"call\",\"cat\":\"call\",\"pid\":%lld,\"tid\":%lld",
        (long long)child->id, (long long)track, (long long)site->tid);
    print_us(to, "ts", at_ns);
    fputc('}', to->to);
}

/* Calls return before the one around them: the driver's are kept until that comes. */
static bool connect(struct ct_export *to, const struct ct_stream_call *call)
{
    struct state *state = to->state;
    const struct ct_site *site = call->site;
    const bool is_driver = strcmp(site->layer, "driver") == 0,
               is_runtime = strcmp(site->layer, "runtime") == 0;
    struct thread *thread = thread_of(state, site->process_id, site->tid);
    if (!thread)
        return false;
    /* All that is deeper lies inside of this one, or of one that is not in the trace. */
    while (thread->children > 0 && thread->child[thread->children - 1].depth > site->depth) {
        const struct child *child = &thread->child[--thread->children];
        if (is_runtime && child->depth == site->depth + 1 && child->start_ns > call->start_ns)
            print_arrow(to, site, child);
    }
    if (!is_driver || site->depth == 0)
        return true;
    if (thread->children == CHILDREN_MAX) {
        thread->children /= 2;
        memmove(thread->child, thread->child + thread->children, thread->children * sizeof(*thread->child));
    }
    if (thread->children == thread->room) {
        const uint32_t room = thread->room ? 2 * thread->room : 8;
        struct child *child = realloc(thread->child, room * sizeof(*child));
        if (!child)
            return false;
        thread->child = child;
        thread->room = room;
    }
    thread->child[thread->children++] =
        (struct child){ .id = call->id, .start_ns = call->start_ns, .depth = site->depth };
    return true;
}

/* ---- calls ---- */

/* A range is called what it says, a launch is called by its function and has its kernel among its arguments.
 */
static void print_name(struct ct_export *to, const struct ct_stream_call *call)
{
    enum ct_detail detail;
    sqlite3_stmt *row =
        strcmp(call->site->layer, "nvtx") == 0 ? ct_stream_detail(to->stream, call, &detail) : NULL;
    if (row && sqlite3_column_type(row, 0) == SQLITE_TEXT)
        print_text(to, row, 0);
    else
        ct_print_json_string(call->site->name, strlen(call->site->name), to->to);
}

static bool call(struct ct_export *to, const struct ct_stream_call *call)
{
    const struct ct_site *site = call->site;
    begin_event(to);
    fputs("{\"ph\":\"X\",\"name\":", to->to);
    print_name(to, call);
    fputs(",\"cat\":", to->to);
    ct_print_json_string(site->layer, strlen(site->layer), to->to);
    fprintf(to->to, ",\"pid\":%lld,\"tid\":%lld", (long long)track_of(to->state, site->process_id),
            (long long)site->tid);
    print_us(to, "ts", call->start_ns - to->extent.begin_ns);
    print_us(to, "dur", call->id - call->start_ns);
    fprintf(to->to, ",\"args\":{\"call_id\":%lld", (long long)call->id);
    if (site->status != 0) {
        fprintf(to->to, ",\"status\":%d,\"status_name\":", site->status);
        ct_print_json_string(site->status_name ? site->status_name : "",
                             site->status_name ? strlen(site->status_name) : 0, to->to);
    }
    if (call->has_bytes)
        fprintf(to->to, ",\"bytes\":%lld", (long long)call->bytes);
    ct_export_details(to, call, ",");
    fputs("}}", to->to);
    return connect(to, call);
}

static bool print_memory(struct ct_export *to)
{
    sqlite3_stmt *rows = ask(to, ct_sql_exports_chrome_memory);
    int rc = rows ? SQLITE_OK : SQLITE_ERROR;
    while (rows && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        begin_event(to);
        fprintf(to->to, "{\"ph\":\"C\",\"name\":\"device memory held\",\"pid\":%lld",
                (long long)track_of(to->state, sqlite3_column_int64(rows, 0)));
        print_us(to, "ts", sqlite3_column_int64(rows, 1) - to->extent.begin_ns);
        fprintf(to->to, ",\"args\":{\"bytes\":%lld}}", (long long)sqlite3_column_int64(rows, 2));
    }
    sqlite3_finalize(rows);
    return rc == SQLITE_DONE;
}

/* One that has not returned has a begin ("B") and no end. */
static bool print_open_calls(struct ct_export *to)
{
    sqlite3_stmt *rows = ask(to, ct_sql_exports_open_calls);
    int rc = rows ? SQLITE_OK : SQLITE_ERROR;
    while (rows && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        begin_event(to);
        fputs("{\"ph\":\"B\",\"name\":", to->to);
        print_text(to, rows, 2);
        fprintf(to->to, ",\"cat\":\"open\",\"pid\":%lld,\"tid\":%lld",
                (long long)track_of(to->state, sqlite3_column_int64(rows, 0)),
                (long long)sqlite3_column_int64(rows, 1));
        print_us(to, "ts", sqlite3_column_int64(rows, 3) - to->extent.begin_ns);
        fputs(",\"args\":{\"returned\":false}}", to->to);
    }
    sqlite3_finalize(rows);
    return rc == SQLITE_DONE;
}

static bool end(struct ct_export *to)
{
    if (!print_open_calls(to) || !print_memory(to))
        return false;
    return fputs("\n]}\n", to->to) >= 0;
}

static void finish(struct ct_export *to)
{
    struct state *state = to->state;
    for (size_t i = 0; state && state->threads && i <= state->thread_mask; i++)
        free(state->threads[i].child);
    free(state ? state->threads : NULL);
    free(state ? state->tracks : NULL);
    free(state);
}

const struct ct_export_format ct_export_chrome = {
    .name = "chrome", .begin = begin, .call = call, .end = end, .finish = finish
};
