/* Implements `cudatrace export --format jsonl`. Writes one line when a call begins and another when it
 * returns, in chronological order. */
#include "export_format.h"

#include "print_rows.h"

#include <stdlib.h>
#include <string.h>

struct state {
    /* By the process's index: its number among the processes with the same PID. They are numbered in the
     * order of their first lines, so that an import numbers them in the same way. 0: no line yet. */
    uint32_t *instance;
};

static bool begin(struct ct_export *to)
{
    struct state *state = to->state;
    state->instance = calloc(to->process_count + 1, sizeof(*state->instance));
    return state->instance != NULL;
}

static void finish(struct ct_export *to)
{
    free(((struct state *)to->state)->instance);
}

static uint32_t instance_of(const struct ct_export *to, int64_t process_id)
{
    const struct ct_export_process *process = ct_export_process(to, process_id);
    uint32_t *instance = ((struct state *)to->state)->instance, count = 1;
    if (process->process_id != process_id || to->process_count == 0)
        return 1;
    uint32_t *own = &instance[process - to->process];
    for (size_t i = 0; *own == 0 && i < to->process_count; i++)
        count += instance[i] > 0 && to->process[i].pid == process->pid;
    *own = *own ? *own : count;
    return *own;
}

static void print_text(struct ct_export *to, const char *name, const char *text)
{
    fprintf(to->to, ",\"%s\":", name);
    ct_export_string(to, text);
}

static bool is_category(const struct ct_stream_call *call, const char *category)
{
    return strcmp(call->site.layer, "driver") == 0 && strcmp(call->site.category, category) == 0;
}

/* Prints an array, because a call may use two objects with the same role. */
static void print_subject(struct ct_export *to, sqlite3_stmt *row)
{
    enum { COLUMNS = 6 };
    const char *before = ",\"objects\":[{";
    for (int c = 0; c < COLUMNS; c += 2) {
        if (sqlite3_column_type(row, c) == SQLITE_NULL)
            continue;
        fputs(before, to->to);
        ct_export_string(to, (const char *)sqlite3_column_text(row, c));
        fputc(':', to->to);
        if (sqlite3_column_type(row, c + 1) == SQLITE_TEXT)
            ct_export_string(to, (const char *)sqlite3_column_text(row, c + 1));
        else
            fprintf(to->to, "%lld", (long long)sqlite3_column_int64(row, c + 1));
        fputc('}', to->to);
        before = ",{";
    }
    fputs(before[1] == '{' ? "]" : "", to->to);
}

/* Prints the addresses of a copy or a memory set, or the objects that a call uses: the memory that it has
 * allocated, streams, events and others. */
static void print_objects(struct ct_export *to, const struct ct_stream_call *call)
{
    enum { ADDRESS = 1 };
    sqlite3_stmt *row;
    if (is_category(call, "copy")) {
        if ((row = ct_stream_detail_of(to->stream, call, CT_DETAIL_ADDRESSES)))
            ct_print_json_members(row, ",", to->to);
    } else if (is_category(call, "set")) {
        if ((row = ct_stream_detail_of(to->stream, call, CT_DETAIL_SET)))
            ct_print_json_members(row, ",", to->to);
    } else if (is_category(call, "memory") &&
               (row = ct_stream_detail_of(to->stream, call, CT_DETAIL_ALLOCATION))) {
        fprintf(to->to, ",\"objects\":[{\"address\":%lld}]", (long long)sqlite3_column_int64(row, ADDRESS));
    } else if ((row = ct_stream_detail_of(to->stream, call, CT_DETAIL_SUBJECT))) {
        print_subject(to, row);
    }
}

static bool event(struct ct_export *to, const struct ct_event *event)
{
    const struct ct_stream_call *call = &event->call;
    const struct ct_site *site = &call->site;
    fputs("{\"ts\":", to->to);
    ct_export_time(to, event->at_ns - to->extent.begin_ns, 1000000000, 9);
    fprintf(to->to, ",\"op_id\":%lld,\"phase\":\"%c\",\"pid\":%lld,\"tid\":%lld", (long long)call->id,
            event->is_begin ? 'B' : 'E', (long long)site->pid, (long long)site->tid);
    const uint32_t instance = instance_of(to, site->process_id);
    if (instance > 1)
        fprintf(to->to, ",\"instance\":%u", instance);
    print_text(to, "name", site->name);
    print_text(to, "layer", site->layer);
    fputs(",\"details\":{", to->to);
    if (event->is_begin) {
        fprintf(to->to, "\"depth\":%d", site->depth);
        print_text(to, "category", site->category);
        if (call->has_bytes)
            fprintf(to->to, ",\"bytes\":%lld", (long long)call->bytes);
        ct_export_details(to, call, ",");
        print_objects(to, call);
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
    .state_bytes = sizeof(struct state),
    .begin = begin,
    .event = event,
    .finish = finish,
};
