/* cudatrace export --format jsonl: a line when a call begins and one when it returns, in the order of time.
 */
#include "events.h"
#include "export.h"

#include <stdlib.h>
#include <string.h>

static void print_text(struct ct_export *to, const char *name, const char *text)
{
    fprintf(to->to, ",\"%s\":", name);
    ct_print_json_string(text, strlen(text), to->to);
}

static void print_event(struct ct_export *to, const struct ct_event *event)
{
    const struct ct_stream_call *call = &event->call;
    const struct ct_site *site = &call->site;
    const int64_t at_ns = event->at_ns - to->extent.begin_ns;
    fprintf(to->to, "{\"ts\":%s%lld.%09lld,\"op_id\":%lld,\"phase\":\"%c\",\"pid\":%lld,\"tid\":%lld",
            at_ns < 0 ? "-" : "", (long long)(at_ns < 0 ? -at_ns : at_ns) / 1000000000,
            (long long)(at_ns < 0 ? -at_ns : at_ns) % 1000000000, (long long)call->id,
            event->is_begin ? 'B' : 'E', (long long)site->pid, (long long)site->tid);
    print_text(to, "name", site->name);
    print_text(to, "layer", site->layer);
    fputs(",\"details\":{", to->to);
    if (event->is_begin) {
        fprintf(to->to, "\"depth\":%d", site->depth);
        print_text(to, "category", site->category);
        if (call->has_bytes)
            fprintf(to->to, ",\"bytes\":%lld", (long long)call->bytes);
        ct_export_details(to, call, ",");
    } else {
        fprintf(to->to, "\"duration_ns\":%lld,\"status\":%d", (long long)(call->id - call->start_ns),
                site->status);
        if (site->status_name)
            print_text(to, "status_name", site->status_name);
    }
    fputs("}}\n", to->to);
}

static bool print_due(struct ct_export *to)
{
    struct ct_events *events = to->state;
    struct ct_event event;
    while (ct_events_next(events, &event))
        print_event(to, &event);
    return !events->failed;
}

static bool begin(struct ct_export *to)
{
    struct ct_events *events = to->state = calloc(1, sizeof(*events));
    if (events)
        ct_events_begin(events, to->stream);
    return events != NULL;
}

static bool call(struct ct_export *to, const struct ct_stream_call *call)
{
    ct_events_add(to->state, call);
    return print_due(to);
}

static bool end(struct ct_export *to)
{
    ct_events_end(to->state);
    return print_due(to);
}

static void finish(struct ct_export *to)
{
    if (to->state)
        ct_events_finish(to->state);
    free(to->state);
}

const struct ct_export_format ct_export_jsonl = {
    .name = "jsonl", .begin = begin, .call = call, .end = end, .finish = finish
};
