/* Implements `cudatrace export --format chrome`. Writes the Trace Event Format, which Perfetto and Chrome's
 * viewer can read (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU). Each
 * call is a complete event ("X"), with times in microseconds since the trace began. Started ranges are
 * asynchronous events ("b", "e"), and marks are instants ("i"). Arrows ("s", "f") lead from runtime calls to
 * the driver calls that they made. Processes and threads have names, and memory has a counter ("C"). A GPU is
 * shown as a process with counters. GPU work is shown in the process that caused it, on one thread per
 * stream, with arrows from the calls that caused it. The format allows events in any order. */
#include "trace_event.h"

#include "schema_sql.h"

#include <string.h>

enum { TID_OF_STREAM = 1000000000 };

struct state {
    bool has_events;
    int64_t gpu_id; /* the GPU named last; 0: none yet */
    int64_t arrows; /* to GPU work */
};

static void begin_event(struct ct_export *to)
{
    ct_trace_event_begin(to, &((struct state *)to->state)->has_events);
}

static int64_t track_of(const struct ct_export *to, int64_t process_id)
{
    return ct_export_process(to, process_id)->track;
}

static bool name_thread(struct ct_export *to, sqlite3_stmt *row)
{
    return ct_trace_event_thread_name(to, &((struct state *)to->state)->has_events, row);
}

static bool begin(struct ct_export *to)
{
    fprintf(
        to->to,
        "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"version\":\"cudatrace %s\",\"begin_monotonic_ns\":%lld,"
        "\"begin_unix_ns\":%lld},\"traceEvents\":[",
        CUDATRACE_VERSION, (long long)to->extent.begin_ns,
        (long long)(to->extent.begin_ns + to->extent.realtime_offset_ns));
    ct_trace_event_process_names(to, &((struct state *)to->state)->has_events);
    return ct_export_each(to, ct_sql_exports_threads, name_thread);
}

/* ---- arrows ---- */

static void print_arrow_end(struct ct_export *to, const struct ct_stream_call *call, const char *phase,
                            int64_t at_ns)
{
    begin_event(to);
    fprintf(to->to, "{\"ph\":%s,\"id\":%lld,\"name\":\"call\",\"cat\":\"call\",\"pid\":%lld,\"tid\":%lld",
            phase, (long long)call->id, (long long)track_of(to, call->site.process_id),
            (long long)call->site.tid);
    ct_trace_event_us(to, "ts", at_ns - to->extent.begin_ns);
    fputc('}', to->to);
}

/* If a runtime call made this driver call, draws an arrow to it, which begins just before the driver call. */
static void print_arrow(struct ct_export *to, const struct ct_event *event)
{
    const struct ct_enclosing *around = &event->around;
    const struct ct_stream_call *call = &event->call;
    if (!around->layer || strcmp(around->layer, "runtime") != 0 || strcmp(call->site.layer, "driver") != 0 ||
        call->start_ns <= around->start_ns)
        return;
    print_arrow_end(to, call, "\"s\"", call->start_ns - 1);
    print_arrow_end(to, call, "\"f\",\"bp\":\"e\"", call->start_ns);
}

/* ---- calls ---- */

/* Prints an event's name. A range is named after its message. A launch is named after its function, and the
 * kernel's name is one of its arguments. */
static void print_name(struct ct_export *to, const struct ct_stream_call *call)
{
    enum ct_detail detail;
    sqlite3_stmt *row =
        strcmp(call->site.layer, "nvtx") == 0 ? ct_stream_detail(to->stream, call, &detail) : NULL;
    const bool is_named = row && sqlite3_column_type(row, 0) == SQLITE_TEXT;
    ct_export_string(to, is_named ? ct_export_text(row, 0) : call->site.name);
}

static void begin_of_call(struct ct_export *to, const struct ct_stream_call *call, char phase, int64_t at_ns)
{
    const struct ct_site *site = &call->site;
    begin_event(to);
    fprintf(to->to, "{\"ph\":\"%c\",\"name\":", phase);
    print_name(to, call);
    fputs(",\"cat\":", to->to);
    ct_export_string(to, site->layer);
    fprintf(to->to, ",\"pid\":%lld,\"tid\":%lld", (long long)track_of(to, site->process_id),
            (long long)site->tid);
    ct_trace_event_us(to, "ts", at_ns - to->extent.begin_ns);
}

/* Prints a call as a complete event. A range that crosses others becomes an asynchronous event ("b", "e"),
 * and a mark an instant event. */
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
        ct_trace_event_us(to, "dur", call->id - call->start_ns);
    else if (phase == 'b')
        fprintf(to->to, ",\"id\":%lld", (long long)call->id);
    else
        fputs(",\"s\":\"t\"", to->to);
    fprintf(to->to, ",\"args\":{\"call_id\":%lld", (long long)call->id);
    if (site->status != 0) {
        fprintf(to->to, ",\"status\":%d,\"status_name\":", site->status);
        ct_export_string(to, site->status_name);
    }
    if (call->has_bytes)
        fprintf(to->to, ",\"bytes\":%lld", (long long)call->bytes);
    ct_export_details(to, call, ",");
    fputs("}}", to->to);
    print_arrow(to, event);
}

static bool event(struct ct_export *to, const struct ct_event *event)
{
    if (event->is_begin)
        print_call(to, event);
    return true;
}

/* ---- GPU work ---- */

/* Each lane of a stream is shown as a thread of the process, with a number that is no thread's tid. */
static bool print_work(struct ct_export *to, const struct ct_work *work)
{
    struct state *state = to->state;
    const int64_t pid = track_of(to, work->process_id);
    const struct ct_trace_event_work on = {
        .work = work,
        .pid = pid,
        .tid = TID_OF_STREAM + work->stream_number * CT_WORK_LANES + work->lane,
        .call_pid = pid,
        .arrow = ++state->arrows,
    };
    if (work->is_first_in_lane) {
        char name[CT_WORK_LANE_NAME_BYTES];
        ct_work_lane_name(work, name);
        ct_trace_event_label(to, &state->has_events, "thread_name", "name", pid, on.tid, name);
    }
    ct_trace_event_work(to, &state->has_events, &on);
    return !ferror(to->to);
}

/* ---- memory, GPUs and open calls ---- */

static bool print_memory(struct ct_export *to, sqlite3_stmt *row)
{
    begin_event(to);
    fprintf(to->to, "{\"ph\":\"C\",\"name\":\"device memory held\",\"pid\":%lld",
            (long long)track_of(to, sqlite3_column_int64(row, 0)));
    ct_trace_event_us(to, "ts", sqlite3_column_int64(row, 1) - to->extent.begin_ns);
    return fprintf(to->to, ",\"args\":{\"bytes\":%lld}}", (long long)sqlite3_column_int64(row, 2)) > 0;
}

/* A GPU's track has a number that is neither a pid nor the track of a process (schema/exports.sql). */
static bool print_gpu(struct ct_export *to, sqlite3_stmt *row)
{
    struct state *state = to->state;
    const int64_t gpu_id = sqlite3_column_int64(row, CT_GPU_COLUMN_ID), track = 2000000000 + gpu_id;
    if (gpu_id != state->gpu_id) {
        ct_trace_event_label(to, &state->has_events, "process_name", "name", track, 0,
                             ct_export_text(row, CT_GPU_COLUMN_NAME));
        state->gpu_id = gpu_id;
    }
    for (int c = CT_GPU_COLUMN_COUNTERS; c < sqlite3_column_count(row); c++) {
        if (sqlite3_column_type(row, c) == SQLITE_NULL)
            continue;
        begin_event(to);
        fputs("{\"ph\":\"C\",\"name\":", to->to);
        ct_export_string(to, sqlite3_column_name(row, c));
        fprintf(to->to, ",\"pid\":%lld", (long long)track);
        ct_trace_event_us(to, "ts", sqlite3_column_int64(row, CT_GPU_COLUMN_TIME) - to->extent.begin_ns);
        fprintf(to->to, ",\"args\":{\"value\":%lld}}", (long long)sqlite3_column_int64(row, c));
    }
    return !ferror(to->to);
}

/* Prints a call that has not returned, as a begin event ("B") without an end. */
static bool print_open_call(struct ct_export *to, sqlite3_stmt *row)
{
    begin_event(to);
    fputs("{\"ph\":\"B\",\"name\":", to->to);
    ct_export_string(to, ct_export_text(row, 2));
    fprintf(to->to, ",\"cat\":\"open\",\"pid\":%lld,\"tid\":%lld",
            (long long)track_of(to, sqlite3_column_int64(row, 0)), (long long)sqlite3_column_int64(row, 1));
    ct_trace_event_us(to, "ts", sqlite3_column_int64(row, 3) - to->extent.begin_ns);
    return fputs(",\"args\":{\"returned\":false}}", to->to) >= 0;
}

static bool end(struct ct_export *to)
{
    return ct_export_each_open_call(to, print_open_call) &&
           ct_export_each(to, ct_sql_exports_memory, print_memory) &&
           ct_export_each_of_newer(to, ct_sql_exports_gpu_counters, print_gpu) &&
           fputs("\n]}\n", to->to) >= 0;
}

const struct ct_export_format ct_export_chrome = {
    .name = "chrome",
    .about = "JSON for Perfetto (ui.perfetto.dev) and Chrome's chrome://tracing: threads,\n"
             "            arrows from runtime calls to their driver calls, device memory in use,\n"
             "            samples of GPUs, and their work if it was recorded",
    .state_bytes = sizeof(struct state),
    .begin = begin,
    .event = event,
    .work = print_work,
    .end = end,
};
