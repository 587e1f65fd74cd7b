/* Sorts the events of calls, which arrive in the order of their return. When a call that returned at T
 * arrives, all calls that began before T - CT_STREAM_LONG_NS have arrived, except longer ones. The longer
 * calls are read a second time, in order of start time. Therefore only the events of the last
 * CT_STREAM_LONG_NS have to be held back. */
#include "events.h"

#include "room.h"

#include <string.h>

/* A thread's open calls and ranges, outermost first. */
struct ct_nest {
    int64_t thread[2]; /* process and tid */
    struct ct_enclosing *call;
    size_t depth, room;
};

/* The beginning or the return of a call. Entries are small because the heap moves them. */
struct ct_moment {
    int64_t at_ns;
    uint64_t order; /* the order of arrival, which breaks ties between equal times */
    uint32_t call;  /* slot in `held` */
    int32_t depth;
    bool is_begin;
    bool is_return; /* false for a zero-length call, whose return is sorted like a beginning, in the heap */
};

struct ct_held {
    struct ct_stream_call call;
    uint32_t moments; /* number of entries that still refer to this call */
    uint32_t next;    /* the next free slot if this one is free; 0: none */
};

/* ---- beginnings and returns ---- */

/* Orders events by time. At equal times, returns precede beginnings, and outer beginnings precede inner
 * ones. */
static bool is_before(const struct ct_moment *a, const struct ct_moment *b)
{
    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns;
    if (a->is_return != b->is_return)
        return a->is_return;
    if (!a->is_return && a->depth != b->depth)
        return a->depth < b->depth;
    return a->order < b->order;
}

/* Returns a slot for the call, which will have `moments` entries. */
static uint32_t hold(struct ct_events *events, const struct ct_stream_call *call, uint32_t moments)
{
    events->failed |=
        !ct_make_room(&events->held, events->held_count, &events->held_room, sizeof(*events->held));
    if (events->failed)
        return 0;
    uint32_t slot = events->free;
    if (slot)
        events->free = events->held[slot].next;
    else
        slot = (uint32_t)(events->held_count += events->held_count == 0 ? 2 : 1) - 1; /* slot 0 is not used */
    events->held[slot] = (struct ct_held){ .call = *call, .moments = moments };
    return slot;
}

static void push_heap(struct ct_events *events, const struct ct_moment *moment)
{
    events->failed |= !ct_make_room(&events->heap, events->count, &events->room, sizeof(*events->heap));
    if (events->failed)
        return;
    size_t slot = events->count++;
    for (; slot > 0 && is_before(moment, &events->heap[(slot - 1) / 2]); slot = (slot - 1) / 2)
        events->heap[slot] = events->heap[(slot - 1) / 2];
    events->heap[slot] = *moment;
}

/* Calls arrive in the order of their return, so the entry is the last one. */
static void push_return(struct ct_events *events, const struct ct_moment *moment)
{
    if (events->return_count == events->return_room && events->first_return > events->return_room / 2) {
        events->return_count -= events->first_return;
        memmove(events->returns, events->returns + events->first_return,
                events->return_count * sizeof(*events->returns));
        events->first_return = 0;
    }
    events->failed |=
        !ct_make_room(&events->returns, events->return_count, &events->return_room, sizeof(*events->returns));
    if (!events->failed)
        events->returns[events->return_count++] = *moment;
}

static void push(struct ct_events *events, int64_t at_ns, bool is_begin, uint32_t call)
{
    if (events->failed)
        return;
    const struct ct_stream_call *its = &events->held[call].call;
    const struct ct_moment moment = { .at_ns = at_ns,
                                      .order = events->order++,
                                      .call = call,
                                      .depth = its->site.depth,
                                      .is_begin = is_begin,
                                      .is_return = !is_begin && its->start_ns < at_ns };
    if (moment.is_return)
        push_return(events, &moment);
    else
        push_heap(events, &moment);
}

static void pop_heap(struct ct_events *events)
{
    const struct ct_moment last = events->heap[--events->count];
    size_t slot = 0;
    for (size_t child; (child = 2 * slot + 1) < events->count; slot = child) {
        if (child + 1 < events->count && is_before(&events->heap[child + 1], &events->heap[child]))
            child++;
        if (!is_before(&events->heap[child], &last))
            break;
        events->heap[slot] = events->heap[child];
    }
    events->heap[slot] = last;
}

/* Returns the first entry, or NULL if there is none. */
static const struct ct_moment *first_moment(const struct ct_events *events)
{
    const struct ct_moment *begun = events->count > 0 ? events->heap : NULL;
    const struct ct_moment *returned =
        events->first_return < events->return_count ? &events->returns[events->first_return] : NULL;
    return !returned || (begun && is_before(begun, returned)) ? begun : returned;
}

static struct ct_event pop(struct ct_events *events)
{
    const struct ct_moment first = *first_moment(events);
    if (first.is_return)
        events->first_return++;
    else
        pop_heap(events);
    struct ct_held *held = &events->held[first.call];
    if (--held->moments == 0) {
        held->next = events->free;
        events->free = first.call;
    }
    return (struct ct_event){ .at_ns = first.at_ns, .is_begin = first.is_begin, .call = held->call };
}

void ct_events_begin(struct ct_events *events, struct ct_stream *stream)
{
    *events = (struct ct_events){ .stream = stream, .until_ns = INT64_MIN };
    ct_intern_init(&events->threads, sizeof(((struct ct_nest *)0)->thread), SIZE_MAX, 1);
    events->has_long = ct_stream_next_long(stream, &events->long_call);
}

void ct_events_add(struct ct_events *events, const struct ct_stream_call *call)
{
    const bool is_long = call->id - call->start_ns > CT_STREAM_LONG_NS;
    const uint32_t slot = hold(events, call, is_long ? 1 : 2);
    if (!is_long)
        push(events, call->start_ns, true, slot);
    push(events, call->id, false, slot);
    events->until_ns = call->id - CT_STREAM_LONG_NS;
}

void ct_events_end(struct ct_events *events)
{
    events->until_ns = INT64_MAX;
}

/* ---- the open calls of threads ---- */

/* Frees the slots of threads without open calls, because a trace may have any number of threads. */
static void forget_idle(struct ct_events *events)
{
    size_t busy = 0;
    bool is_new;
    ct_intern_reset(&events->threads, 1);
    for (size_t i = 0; i < events->open_count; i++) {
        struct ct_nest *nest = &events->open[i];
        if (nest->depth == 0) {
            free(nest->call);
            continue;
        }
        ct_intern_get(&events->threads, nest->thread, &is_new);
        events->open[busy++] = *nest;
    }
    events->open_count = busy;
}

/* Returns a thread's open calls. If out of memory, sets `failed` and returns NULL. */
static struct ct_nest *nest_of(struct ct_events *events, const struct ct_site *site)
{
    const int64_t thread[2] = { site->process_id, site->tid };
    bool is_new;
    int64_t number = ct_intern_find(&events->threads, thread);
    if (number)
        return &events->open[number - 1];
    if (events->open_count == events->open_room) {
        forget_idle(events);
        const size_t full =
            2 * events->open_count > events->open_room ? events->open_room : events->open_count;
        events->failed |= !ct_make_room(&events->open, full, &events->open_room, sizeof(*events->open));
    }
    number = ct_intern_get(&events->threads, thread, &is_new);
    events->failed |= number == 0;
    if (events->failed)
        return NULL;
    events->open[events->open_count++] = (struct ct_nest){ .thread = { thread[0], thread[1] } };
    return &events->open[number - 1];
}

static void open_nest(struct ct_events *events, struct ct_event *event)
{
    const struct ct_site *site = &event->call.site;
    struct ct_nest *open = nest_of(events, site);
    if (!open)
        return;
    if (open->depth > 0)
        event->around = open->call[open->depth - 1];
    event->is_across = site->kind == CT_SITE_START || (open->depth > 0 && event->call.id > event->around.id);
    if (site->kind == CT_SITE_MARK || event->is_across)
        return;
    events->failed |= !ct_make_room(&open->call, open->depth, &open->room, sizeof(*open->call));
    if (events->failed)
        return;
    const bool is_call = strcmp(site->layer, "runtime") == 0 || strcmp(site->layer, "driver") == 0;
    const int64_t outermost_id = event->around.outermost_id;
    open->call[open->depth++] = (struct ct_enclosing){
        .id = event->call.id,
        .start_ns = event->call.start_ns,
        .layer = site->layer,
        .outermost_id = outermost_id || !is_call ? outermost_id : event->call.id,
    };
}

/* Closes the call or range that ends. All calls inside it have returned. Therefore, it is either the
 * innermost open one of its thread, or it crosses others and was never opened. */
static void close_nest(struct ct_events *events, struct ct_event *event)
{
    struct ct_nest *open = nest_of(events, &event->call.site);
    if (!open)
        return;
    event->is_across = open->depth == 0 || open->call[open->depth - 1].id != event->call.id;
    open->depth -= !event->is_across;
}

bool ct_events_next(struct ct_events *events, struct ct_event *event)
{
    const struct ct_moment *first = first_moment(events);
    while (events->has_long && events->long_call.start_ns < events->until_ns &&
           (!first || events->long_call.start_ns <= first->at_ns)) {
        push(events, events->long_call.start_ns, true, hold(events, &events->long_call, 1));
        events->has_long = ct_stream_next_long(events->stream, &events->long_call);
        first = first_moment(events);
    }
    if (events->failed || !first || first->at_ns >= events->until_ns)
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
    for (size_t i = 0; i < events->open_count; i++)
        free(events->open[i].call);
    ct_intern_finish(&events->threads);
    free(events->open);
    free(events->heap);
    free(events->returns);
    free(events->held);
}
