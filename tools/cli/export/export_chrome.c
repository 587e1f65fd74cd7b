/* cudatrace export --format chrome: the Trace Event Format, as Perfetto and Chrome's viewer read it
 * (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU): a complete event ("X")
 * for each call, in microseconds since the trace began; asynchronous ones ("b", "e") for ranges that were
 * started, instants ("i") for marks; names of processes and threads; arrows ("s", "f") from runtime calls to
 * the driver calls that they made; a counter ("C") of memory. The order of events does not matter there. */
#include "events.h"
#include "export.h"

#include "schema_sql.h"

#include <stdlib.h>
#include <string.h>

struct state {
    struct ct_events events;
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

static int64_t track_of(const struct ct_export *to, int64_t process_id)
{
    return ct_export_process(to, process_id)->track;
}

static void print_text(struct ct_export *to, sqlite3_stmt *rows, int column)
{
    const char *text = (const char *)sqlite3_column_text(rows, column);
    ct_print_json_string(text ? text : "", text ? (size_t)sqlite3_column_bytes(rows, column) : 0, to->to);
}

static void name_processes(struct ct_export *to)
{
    for (size_t i = 0; i < to->process_count; i++) {
        begin_event(to);
        fprintf(to->to, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%lld,\"args\":{\"name\":",
                (long long)to->process[i].track);
        ct_print_json_string(to->process[i].name, strlen(to->process[i].name), to->to);
        fputs("}}", to->to);
    }
}

static bool name_threads(struct ct_export *to)
{
    sqlite3_stmt *rows = ct_export_ask(to, ct_sql_exports_threads);
    int rc = rows ? SQLITE_OK : SQLITE_ERROR;
    while (rows && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        begin_event(to);
        fprintf(to->to,
                "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%lld,\"tid\":%lld,\"args\":{\"name\":",
                (long long)sqlite3_column_int64(rows, 3), (long long)sqlite3_column_int64(rows, 1));
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
    ct_events_begin(&state->events, to->stream);
    fprintf(
        to->to,
        "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"version\":\"cudatrace %s\",\"begin_monotonic_ns\":%lld,"
        "\"begin_unix_ns\":%lld},\"traceEvents\":[",
        CUDATRACE_VERSION, (long long)to->extent.begin_ns,
        (long long)(to->extent.begin_ns + to->extent.realtime_offset_ns));
    name_processes(to);
    return name_threads(to);
}

/* ---- arrows ---- */

static void print_arrow_end(struct ct_export *to, const struct ct_stream_call *call, const char *phase,
                            int64_t at_ns)
{
    begin_event(to);
    fprintf(to->to, "{\"ph\":%s,\"id\":%lld,\"name\":\"call\",\"cat\":\"call\",\"pid\":%lld,\"tid\":%lld",
            phase, (long long)call->id, (long long)track_of(to, call->site.process_id),
            (long long)call->site.tid);
    print_us(to, "ts", at_ns - to->extent.begin_ns);
    fputc('}', to->to);
}

/* To a driver's call from just before it, when the thread was in the runtime's. */
static void print_arrow(struct ct_export *to, const struct ct_event *event)
{
    const struct ct_enclosing *around = &event->around;
    const struct ct_stream_call *call = &event->call;
    if (!around->layer || strcmp(around->layer, "runtime") != 0 ||
        strcmp(call->site.layer, "driver") != 0 || call->start_ns <= around->start_ns)
        return;
    print_arrow_end(to, call, "\"s\"", call->start_ns - 1);
    print_arrow_end(to, call, "\"f\",\"bp\":\"e\"", call->start_ns);
}

/* ---- calls ---- */

/* A range is called what it says, a launch is called by its function and has its kernel among its arguments.
 */
static void print_name(struct ct_export *to, const struct ct_stream_call *call)
{
    enum ct_detail detail;
    sqlite3_stmt *row =
        strcmp(call->site.layer, "nvtx") == 0 ? ct_stream_detail(to->stream, call, &detail) : NULL;
    if (row && sqlite3_column_type(row, 0) == SQLITE_TEXT)
        print_text(to, row, 0);
    else
        ct_print_json_string(call->site.name, strlen(call->site.name), to->to);
}

static void begin_of_call(struct ct_export *to, const struct ct_stream_call *call, char phase, int64_t at_ns)
{
    const struct ct_site *site = &call->site;
    begin_event(to);
    fprintf(to->to, "{\"ph\":\"%c\",\"name\":", phase);
    print_name(to, call);
    fputs(",\"cat\":", to->to);
    ct_print_json_string(site->layer, strlen(site->layer), to->to);
    fprintf(to->to, ",\"pid\":%lld,\"tid\":%lld", (long long)track_of(to, site->process_id),
            (long long)site->tid);
    print_us(to, "ts", at_ns - to->extent.begin_ns);
}

/* A complete event; what lies across others is an asynchronous one ("b", "e"), and a mark an instant. */
static void print_call(struct ct_export *to, const struct ct_event *event)
{
    const struct ct_stream_call *call = &event->call;
    const struct ct_site *site = &call->site;
    const char phase = site->kind == CT_SITE_MARK ? 'i' : event->is_across ? 'b' : 'X';
    if (phase == 'b') {
        begin_of_call(to, call, 'e', call->id);
        fprintf(to->to, ",\"id\":%lld}", (long long)call->id);
    }
    begin_of_call(to, call, phase, call->start_ns);
    if (phase == 'X')
        print_us(to, "dur", call->id - call->start_ns);
    else if (phase == 'b')
        fprintf(to->to, ",\"id\":%lld", (long long)call->id);
    else
        fputs(",\"s\":\"t\"", to->to);
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
    print_arrow(to, event);
}

static bool print_due(struct ct_export *to)
{
    struct state *state = to->state;
    struct ct_event event;
    while (ct_events_next(&state->events, &event)) {
        if (event.is_begin)
            print_call(to, &event);
    }
    return !state->events.failed;
}

static bool call(struct ct_export *to, const struct ct_stream_call *call)
{
    struct state *state = to->state;
    ct_events_add(&state->events, call);
    return print_due(to);
}

static bool print_memory(struct ct_export *to)
{
    sqlite3_stmt *rows = ct_export_ask(to, ct_sql_exports_memory);
    int rc = rows ? SQLITE_OK : SQLITE_ERROR;
    while (rows && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        begin_event(to);
        fprintf(to->to, "{\"ph\":\"C\",\"name\":\"device memory held\",\"pid\":%lld",
                (long long)track_of(to, sqlite3_column_int64(rows, 0)));
        print_us(to, "ts", sqlite3_column_int64(rows, 1) - to->extent.begin_ns);
        fprintf(to->to, ",\"args\":{\"bytes\":%lld}}", (long long)sqlite3_column_int64(rows, 2));
    }
    sqlite3_finalize(rows);
    return rc == SQLITE_DONE;
}

/* One that has not returned has a begin ("B") and no end. */
static bool print_open_calls(struct ct_export *to)
{
    sqlite3_stmt *rows = ct_export_ask(to, ct_sql_exports_open_calls);
    int rc = rows ? SQLITE_OK : SQLITE_ERROR;
    while (rows && (rc = ct_export_next_open_call(to, rows)) == SQLITE_ROW) {
        begin_event(to);
        fputs("{\"ph\":\"B\",\"name\":", to->to);
        print_text(to, rows, 2);
        fprintf(to->to, ",\"cat\":\"open\",\"pid\":%lld,\"tid\":%lld",
                (long long)track_of(to, sqlite3_column_int64(rows, 0)),
                (long long)sqlite3_column_int64(rows, 1));
        print_us(to, "ts", sqlite3_column_int64(rows, 3) - to->extent.begin_ns);
        fputs(",\"args\":{\"returned\":false}}", to->to);
    }
    sqlite3_finalize(rows);
    return rc == SQLITE_DONE;
}

static bool end(struct ct_export *to)
{
    struct state *state = to->state;
    ct_events_end(&state->events);
    if (!print_due(to) || !print_open_calls(to) || !print_memory(to))
        return false;
    return fputs("\n]}\n", to->to) >= 0;
}

static void finish(struct ct_export *to)
{
    struct state *state = to->state;
    if (state)
        ct_events_finish(&state->events);
    free(state);
}

const struct ct_export_format ct_export_chrome = {
    .name = "chrome", .begin = begin, .call = call, .end = end, .finish = finish
};
