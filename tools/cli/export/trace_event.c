/* Prints events of the Trace Event Format. */
#include "trace_event.h"

#include "schema_sql.h"

#include <string.h>

void ct_trace_event_begin(struct ct_export *to, bool *has_events)
{
    fputs(*has_events ? ",\n" : "\n", to->to);
    *has_events = true;
}

void ct_trace_event_us(struct ct_export *to, const char *name, int64_t ns)
{
    fprintf(to->to, ",\"%s\":", name);
    ct_export_time(to, ns, 1000, 3);
}

void ct_trace_event_label(struct ct_export *to, bool *has_events, const char *what, const char *key,
                          int64_t pid, int64_t tid, const char *value)
{
    ct_trace_event_begin(to, has_events);
    fprintf(to->to, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%lld,", what, (long long)pid);
    if (tid)
        fprintf(to->to, "\"tid\":%lld,", (long long)tid);
    fprintf(to->to, "\"args\":{\"%s\":", key);
    ct_export_string(to, value);
    fputs("}}", to->to);
}

void ct_trace_event_process_names(struct ct_export *to, bool *has_events)
{
    for (size_t i = 0; i < to->process_count; i++)
        ct_trace_event_label(to, has_events, "process_name", "name", to->process[i].track, 0,
                             to->process[i].name);
}

bool ct_trace_event_thread_name(struct ct_export *to, bool *has_events, sqlite3_stmt *row)
{
    ct_trace_event_label(to, has_events, "thread_name", "name", sqlite3_column_int64(row, 3),
                         sqlite3_column_int64(row, 1), ct_export_text(row, 2));
    return !ferror(to->to);
}

/* ---- GPU work ---- */

static void print_arrow_end(struct ct_export *to, bool *has_events, const struct ct_trace_event_work *on,
                            bool is_begin)
{
    const struct ct_work *work = on->work;
    ct_trace_event_begin(to, has_events);
    fprintf(to->to, "{\"ph\":%s,\"id\":%lld,\"name\":\"ac2g\",\"cat\":\"ac2g\",\"pid\":%lld,\"tid\":%lld",
            is_begin ? "\"s\"" : "\"f\",\"bp\":\"e\"", (long long)on->arrow,
            (long long)(is_begin ? on->call_pid : on->pid),
            (long long)(is_begin ? work->cause.tid : on->tid));
    ct_trace_event_us(to, "ts", (is_begin ? work->cause.start_ns : work->start_ns) - to->extent.begin_ns);
    fputc('}', to->to);
}

static void print_sizes(struct ct_export *to, const int64_t *size)
{
    fprintf(to->to, ",\"grid\":[%lld,%lld,%lld],\"block\":[%lld,%lld,%lld],\"shared memory\":%lld",
            (long long)size[0], (long long)size[1], (long long)size[2], (long long)size[3],
            (long long)size[4], (long long)size[5], (long long)size[CT_SIZE_SHARED_BYTES]);
}

static void print_args(struct ct_export *to, const struct ct_work *work)
{
    const int64_t duration_ns = work->end_ns - work->start_ns;
    fprintf(to->to, ",\"args\":{\"device\":%lld,\"context\":%lld,\"stream\":%lld", (long long)work->device,
            (long long)work->context, (long long)work->stream);
    if (work->cause.call_id)
        fprintf(to->to, ",\"correlation\":%lld", (long long)work->cause.correlation);
    if (strcmp(work->kind, "copy") == 0 || strcmp(work->kind, "set") == 0) {
        fprintf(to->to, ",\"bytes\":%lld", (long long)work->bytes);
        if (duration_ns > 0)
            fprintf(to->to, ",\"memory bandwidth (GB/s)\":%.3f", (double)work->bytes / (double)duration_ns);
    }
    if (work->node)
        fprintf(to->to, ",\"graph node id\":%lld", (long long)work->node);
    if (strcmp(work->kind, "kernel") == 0 && work->cause.size[CT_SIZE_BLOCK_X])
        print_sizes(to, work->cause.size);
    if (work->graph)
        fprintf(to->to, ",\"graph id\":%lld", (long long)work->graph);
    fputc('}', to->to);
}

void ct_trace_event_work(struct ct_export *to, bool *has_events, const struct ct_trace_event_work *on)
{
    static const struct {
        const char *kind, *category, *name;
    } kinds[] = { { "kernel", "kernel", NULL },
                  { "copy", "gpu_memcpy", "Memcpy" },
                  { "set", "gpu_memset", "Memset" },
                  { "graph", "gpu_graph", "CUDA graph" } };
    const struct ct_work *work = on->work;
    size_t k = 0;
    while (k < sizeof(kinds) / sizeof(kinds[0]) && strcmp(kinds[k].kind, work->kind) != 0)
        k++;
    if (k == sizeof(kinds) / sizeof(kinds[0]))
        return;
    char name[64];
    snprintf(name, sizeof(name), "%s%s%s", kinds[k].name ? kinds[k].name : "", work->copy_kind ? " " : "",
             work->copy_kind ? work->copy_kind : "");
    ct_trace_event_begin(to, has_events);
    fputs("{\"ph\":\"X\",\"name\":", to->to);
    ct_export_string(to, kinds[k].name ? name : work->kernel);
    fprintf(to->to, ",\"cat\":\"%s\",\"pid\":%lld,\"tid\":%lld", kinds[k].category, (long long)on->pid,
            (long long)on->tid);
    ct_trace_event_us(to, "ts", work->start_ns - to->extent.begin_ns);
    ct_trace_event_us(to, "dur", work->end_ns - work->start_ns);
    print_args(to, work);
    fputc('}', to->to);
    if (!work->cause.call_id)
        return;
    print_arrow_end(to, has_events, on, true);
    print_arrow_end(to, has_events, on, false);
}
