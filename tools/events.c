/* Calls come by their return. All that began before a moment and took no more than CT_STREAM_LONG_NS have
 * come when those that return so much later do; those that took longer are read a second time, by their
 * start. So no more events are held back than happen in that time. */
#include "events.h"

#include <stdlib.h>
#include <string.h>

/* Of a thread, the outermost first. */
struct ct_nest {
    struct ct_enclosing *call;
    uint32_t depth, room;
};

/* Of a call that has a length: one that has none lies among the beginnings. */
static bool is_return(const struct ct_event *event)
{
    return !event->is_begin && event->call.start_ns < event->at_ns;
}

/* Of one moment: returns, then beginnings, the outer one first. */
static bool is_before(const struct ct_event *a, const struct ct_event *b)
{
    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns;
    if (is_return(a) != is_return(b))
        return is_return(a);
    if (!is_return(a) && a->call.site->depth != b->call.site->depth)
        return a->call.site->depth < b->call.site->depth;
    return a->order < b->order;
}

static void push(struct ct_events *events, int64_t at_ns, bool is_begin, const struct ct_stream_call *call)
{
    if (events->count == events->room) {
        const size_t room = events->room ? 2 * events->room : 1024;
        struct ct_event *heap = realloc(events->heap, room * sizeof(*heap));
        events->failed |= !heap;
        if (!heap)
            return;
        events->heap = heap;
        events->room = room;
    }
    const struct ct_event event = {
        .at_ns = at_ns, .order = events->order++, .is_begin = is_begin, .call = *call
    };
    size_t place = events->count++;
    for (; place > 0 && is_before(&event, &events->heap[(place - 1) / 2]); place = (place - 1) / 2)
        events->heap[place] = events->heap[(place - 1) / 2];
    events->heap[place] = event;
}

static struct ct_event pop(struct ct_events *events)
{
    const struct ct_event first = events->heap[0], last = events->heap[--events->count];
    size_t place = 0;
    for (size_t child; (child = 2 * place + 1) < events->count; place = child) {
        if (child + 1 < events->count && is_before(&events->heap[child + 1], &events->heap[child]))
            child++;
        if (!is_before(&events->heap[child], &last))
            break;
        events->heap[place] = events->heap[child];
    }
    events->heap[place] = last;
    return first;
}

void ct_events_begin(struct ct_events *events, struct ct_stream *stream)
{
    *events = (struct ct_events){ .stream = stream, .until_ns = INT64_MIN };
    events->threads = ct_stream_threads(stream);
    events->open = calloc(events->threads + 1, sizeof(*events->open));
    events->failed = !events->open;
    events->has_long = ct_stream_next_long(stream, &events->long_call);
}

void ct_events_add(struct ct_events *events, const struct ct_stream_call *call)
{
    if (call->id - call->start_ns <= CT_STREAM_LONG_NS)
        push(events, call->start_ns, true, call);
    push(events, call->id, false, call);
    events->until_ns = call->id - CT_STREAM_LONG_NS;
}

void ct_events_end(struct ct_events *events)
{
    events->until_ns = INT64_MAX;
}

static void open_nest(struct ct_events *events, struct ct_event *event)
{
    const struct ct_site *site = event->call.site;
    struct ct_nest *open = &events->open[site->thread];
    if (open->depth > 0)
        event->around = open->call[open->depth - 1];
    event->is_across = site->kind == CT_SITE_START || (open->depth > 0 && event->call.id > event->around.id);
    if (site->kind == CT_SITE_MARK || event->is_across)
        return;
    if (open->depth == open->room) {
        const uint32_t room = open->room ? 2 * open->room : 8;
        struct ct_enclosing *call = realloc(open->call, room * sizeof(*call));
        events->failed |= !call;
        if (!call)
            return;
        open->call = call;
        open->room = room;
    }
    const bool is_call = strcmp(site->layer, "runtime") == 0 || strcmp(site->layer, "driver") == 0;
    open->call[open->depth++] = (struct ct_enclosing){ .id = event->call.id,
                                                       .start_ns = event->call.start_ns,
                                                       .site = site,
                                                       .in_call = event->around.in_call || is_call };
}

/* What lies in it has returned: it is the innermost, or was never among them. */
static void close_nest(struct ct_events *events, struct ct_event *event)
{
    struct ct_nest *open = &events->open[event->call.site->thread];
    event->is_across = open->depth == 0 || open->call[open->depth - 1].id != event->call.id;
    open->depth -= !event->is_across;
}

bool ct_events_next(struct ct_events *events, struct ct_event *event)
{
    while (events->has_long && events->long_call.start_ns < events->until_ns &&
           (events->count == 0 || events->long_call.start_ns <= events->heap[0].at_ns)) {
        push(events, events->long_call.start_ns, true, &events->long_call);
        events->has_long = ct_stream_next_long(events->stream, &events->long_call);
    }
    if (events->failed || events->count == 0 || events->heap[0].at_ns >= events->until_ns)
        return false;
    *event = pop(events);
    if (event->is_begin)
        open_nest(events, event);
    else
        close_nest(events, event);
    return !events->failed;
}

void ct_events_finish(struct ct_events *events)
{
    for (uint32_t i = 0; events->open && i < events->threads; i++)
        free(events->open[i].call);
    free(events->open);
    free(events->heap);
}
