/* Implements `cudatrace export --format jsonl`. Writes one line when a call begins and another when it
 * returns, in chronological order. */
#include "export_format.h"

static void print_text(struct ct_export *to, const char *name, const char *text)
{
    fprintf(to->to, ",\"%s\":", name);
    ct_export_string(to, text);
}

static bool event(struct ct_export *to, const struct ct_event *event)
{
    const struct ct_stream_call *call = &event->call;
    const struct ct_site *site = &call->site;
    fputs("{\"ts\":", to->to);
    ct_export_time(to, event->at_ns - to->extent.begin_ns, 1000000000, 9);
    fprintf(to->to, ",\"op_id\":%lld,\"phase\":\"%c\",\"pid\":%lld,\"tid\":%lld", (long long)call->id,
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
    return fputs("}}\n", to->to) >= 0;
}

const struct ct_export_format ct_export_jsonl = {
    .name = "jsonl",
    .about = "one line of JSON when a call begins and one when it returns, in order of time",
    .event = event,
};
