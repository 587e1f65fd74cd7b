/* Implements `cudatrace export --format pytorch`. Writes the file that torch.profiler's export_chrome_trace()
 * writes, for tools that read such files. CUDA calls have the categories `cuda_runtime` and `cuda_driver`,
 * and ranges the category `user_annotation`. Calls inside other CUDA calls are left out, because each piece
 * of work belongs to exactly one call. Each device is shown as a process whose pid is the device's number,
 * and whose threads are the device's streams. */
#include "trace_event.h"

#include "schema_sql.h"

#include <string.h>

struct state {
    bool has_events;
    bool has_devices;
    int64_t arrows;
    uint64_t devices; /* bits of the devices that have been named; the last bit is for all further devices */
};

static bool print_device(struct ct_export *to, sqlite3_stmt *row)
{
    struct state *state = to->state;
    fprintf(to->to, "%s{\"id\":%lld,\"name\":", state->has_devices ? "," : "",
            (long long)sqlite3_column_int64(row, 0));
    state->has_devices = true;
    const bool has_name = sqlite3_column_type(row, 1) != SQLITE_NULL;
    ct_export_string(to, ct_export_text(row, has_name ? 1 : 4)); /* else the UUID */
    fprintf(to->to, ",\"totalGlobalMem\":%lld}", (long long)sqlite3_column_int64(row, 3));
    return !ferror(to->to);
}

static bool print_thread(struct ct_export *to, sqlite3_stmt *row)
{
    struct state *state = to->state;
    return ct_trace_event_thread_name(to, &state->has_events, row);
}

static bool begin(struct ct_export *to)
{
    struct state *state = to->state;
    fprintf(to->to,
            "{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":%lld,"
            "\"cudatrace_version\":\"" CUDATRACE_VERSION "\",\"deviceProperties\":[",
            (long long)(to->extent.begin_ns + to->extent.realtime_offset_ns));
    if (!ct_export_each_of_newer(to, ct_sql_exports_gpus, print_device))
        return false;
    fputs("],\"traceEvents\":[", to->to);
    ct_trace_event_process_names(to, &state->has_events);
    return ct_export_each(to, ct_sql_exports_threads, print_thread);
}

/* Returns the category of a call or pushed range, or NULL if the format does not have such events. */
static const char *category_of(const struct ct_event *event)
{
    static const char *const categories[][2] = { { "runtime", "cuda_runtime" },
                                                 { "driver", "cuda_driver" },
                                                 { "nvtx", "user_annotation" } };
    const struct ct_site *site = &event->call.site;
    const bool is_range = site->kind == CT_SITE_PUSH;
    if (event->is_across || (site->kind == CT_SITE_CALL && event->around.outermost_id) ||
        (site->kind != CT_SITE_CALL && !is_range))
        return NULL;
    for (size_t i = 0; i < sizeof(categories) / sizeof(categories[0]); i++) {
        if (strcmp(categories[i][0], site->layer) == 0)
            return categories[i][1];
    }
    return NULL;
}

static bool event(struct ct_export *to, const struct ct_event *event)
{
    struct state *state = to->state;
    const struct ct_stream_call *call = &event->call;
    const char *category = event->is_begin ? category_of(event) : NULL;
    if (!category)
        return true;
    enum ct_detail detail;
    sqlite3_stmt *range =
        call->site.kind == CT_SITE_PUSH ? ct_stream_detail(to->stream, call, &detail) : NULL;
    const bool is_named = range && sqlite3_column_type(range, 0) == SQLITE_TEXT;
    ct_trace_event_begin(to, &state->has_events);
    fputs("{\"ph\":\"X\",\"name\":", to->to);
    ct_export_string(to, is_named ? ct_export_text(range, 0) : call->site.name);
    fprintf(to->to, ",\"cat\":\"%s\",\"pid\":%lld,\"tid\":%lld", category,
            (long long)ct_export_process(to, call->site.process_id)->track, (long long)call->site.tid);
    ct_trace_event_us(to, "ts", call->start_ns - to->extent.begin_ns);
    ct_trace_event_us(to, "dur", call->id - call->start_ns);
    if (call->site.kind == CT_SITE_CALL)
        fprintf(to->to, ",\"args\":{\"correlation\":%lld}", (long long)call->id);
    return fputc('}', to->to) != EOF;
}

static void name_device(struct ct_export *to, int64_t device)
{
    struct state *state = to->state;
    const uint64_t bit = UINT64_C(1) << (device >= 0 && device < 63 ? device : 63);
    char label[32];
    if (state->devices & bit)
        return;
    state->devices |= bit;
    snprintf(label, sizeof(label), "GPU %lld", (long long)device);
    ct_trace_event_label(to, &state->has_events, "process_name", "name", device, 0, label);
    ct_trace_event_label(to, &state->has_events, "process_labels", "labels", device, 0, label);
}

static bool work(struct ct_export *to, const struct ct_work *work)
{
    struct state *state = to->state;
    const struct ct_trace_event_work on = {
        .work = work,
        .pid = work->device,
        .tid = work->stream,
        .call_pid = ct_export_process(to, work->process_id)->track,
        .arrow = ++state->arrows,
    };
    if (work->is_first_in_lane && work->lane == 0) {
        char name[40];
        name_device(to, work->device);
        snprintf(name, sizeof(name), "stream %lld", (long long)work->stream);
        ct_trace_event_label(to, &state->has_events, "thread_name", "name", on.pid, on.tid, name);
    }
    ct_trace_event_work(to, &state->has_events, &on);
    return !ferror(to->to);
}

static bool end(struct ct_export *to)
{
    return fputs("\n]}\n", to->to) >= 0;
}

const struct ct_export_format ct_export_pytorch = {
    .name = "pytorch",
    .about = "JSON as torch.profiler writes it, for tools such as HolisticTraceAnalysis: CUDA\n"
             "            calls, ranges, and the work of GPUs if it was recorded",
    .state_bytes = sizeof(struct state),
    .begin = begin,
    .event = event,
    .work = work,
    .end = end,
};
