/* cudatrace export --format jsonl: a line when a call begins and one when it returns, in the order of time.
 *
 * Calls come by their return. All that began before a moment and took no more than CT_STREAM_LONG_NS have
 * come when those that return so much later do; those that took longer are read a second time, by their
 * start. So no more events are held back than happen in that time. */
#include "export.h"

#include <stdlib.h>
#include <string.h>

struct event {
    int64_t at_ns;
    uint64_t order; /* of those of one moment: the order in which they came */
    bool is_begin;
    struct ct_stream_call call;
};

struct state {
    struct event *heap; /* the earliest first */
    size_t count, room;
    uint64_t order;
    struct ct_stream_call long_call; /* the next to begin */
    bool has_long;
};

/* Of two that begin at once the outer one comes first. */
static bool is_before(const struct event *a, const struct event *b)
{
    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns;
    if (a->is_begin && b->is_begin && a->call.site->depth != b->call.site->depth)
        return a->call.site->depth < b->call.site->depth;
    return a->order < b->order;
}

static bool push(struct state *state, int64_t at_ns, bool is_begin, const struct ct_stream_call *call)
{
    if (state->count == state->room) {
        const size_t room = state->room ? 2 * state->room : 1024;
        struct event *heap = realloc(state->heap, room * sizeof(*heap));
        if (!heap)
            return false;
        state->heap = heap;
        state->room = room;
    }
    const struct event event = {
        .at_ns = at_ns, .order = state->order++, .is_begin = is_begin, .call = *call
    };
    size_t place = state->count++;
    for (; place > 0 && is_before(&event, &state->heap[(place - 1) / 2]); place = (place - 1) / 2)
        state->heap[place] = state->heap[(place - 1) / 2];
    state->heap[place] = event;
    return true;
}

static struct event pop(struct state *state)
{
    const struct event first = state->heap[0], last = state->heap[--state->count];
    size_t place = 0;
    for (size_t child; (child = 2 * place + 1) < state->count; place = child) {
        if (child + 1 < state->count && is_before(&state->heap[child + 1], &state->heap[child]))
            child++;
        if (!is_before(&state->heap[child], &last))
            break;
        state->heap[place] = state->heap[child];
    }
    state->heap[place] = last;
    return first;
}

static void print_text(struct ct_export *to, const char *name, const char *text)
{
    fprintf(to->to, ",\"%s\":", name);
    ct_print_json_string(text, strlen(text), to->to);
}

static void print_event(struct ct_export *to, const struct event *event)
{
    const struct ct_stream_call *call = &event->call;
    const struct ct_site *site = call->site;
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

/* All that happened before a moment. */
static bool flush(struct ct_export *to, struct state *state, int64_t until_ns)
{
    for (;;) {
        if (state->has_long && state->long_call.start_ns < until_ns &&
            (state->count == 0 || state->long_call.start_ns <= state->heap[0].at_ns)) {
            if (!push(state, state->long_call.start_ns, true, &state->long_call))
                return false;
            state->has_long = ct_stream_next_long(to->stream, &state->long_call);
        }
        if (state->count == 0 || state->heap[0].at_ns >= until_ns)
            return true;
        const struct event event = pop(state);
        print_event(to, &event);
    }
}

static bool begin(struct ct_export *to)
{
    struct state *state = to->state = calloc(1, sizeof(*state));
    if (!state)
        return false;
    state->has_long = ct_stream_next_long(to->stream, &state->long_call);
    return true;
}

static bool call(struct ct_export *to, const struct ct_stream_call *call)
{
    struct state *state = to->state;
    const bool is_long = call->id - call->start_ns > CT_STREAM_LONG_NS;
    return (is_long || push(state, call->start_ns, true, call)) && push(state, call->id, false, call) &&
           flush(to, state, call->id - CT_STREAM_LONG_NS);
}

static bool end(struct ct_export *to)
{
    return flush(to, to->state, INT64_MAX);
}

static void finish(struct ct_export *to)
{
    struct state *state = to->state;
    free(state ? state->heap : NULL);
    free(state);
}

const struct ct_export_format ct_export_jsonl = {
    .name = "jsonl", .begin = begin, .call = call, .end = end, .finish = finish
};
