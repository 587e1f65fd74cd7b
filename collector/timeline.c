#include "timeline.h"

#include <string.h>
#include <time.h>

enum { ANCHOR_INTERVAL_NS = 5000000, FIRST_SLOPE_NS = 10000000, ANCHOR_TRIES = 5 };

/* Nanoseconds a tick, 32.32. */
static uint64_t slope(const struct ct_anchor *from, const struct ct_anchor *to)
{
    return (uint64_t)(((unsigned __int128)(to->monotonic_ns - from->monotonic_ns) << 32) /
                      (to->ticks - from->ticks));
}

static void append(struct ct_timeline *timeline, struct ct_anchor anchor)
{
    if (timeline->count == CT_ANCHORS) {
        /* Of the older half every second one goes: the past gets coarser, and is never forgotten. */
        const size_t half = CT_ANCHORS / 2, kept = half / 2;
        for (size_t i = 0; i < kept; i++)
            timeline->anchor[i] = timeline->anchor[2 * i];
        memmove(timeline->anchor + kept, timeline->anchor + half, half * sizeof(timeline->anchor[0]));
        timeline->count = kept + half;
        for (size_t i = 0; i + 1 < timeline->count; i++)
            timeline->line[i] = slope(&timeline->anchor[i], &timeline->anchor[i + 1]);
    }
    const size_t n = timeline->count;
    timeline->anchor[n] = anchor;
    if (n > 0) {
        timeline->line[n - 1] = slope(&timeline->anchor[n - 1], &anchor);
        timeline->line[n] = timeline->line[n - 1];
    }
    timeline->count = n + 1;
}

static bool follows(const struct ct_timeline *timeline, struct ct_anchor anchor)
{
    if (timeline->count == 0)
        return true;
    const struct ct_anchor *last = &timeline->anchor[timeline->count - 1];
    return anchor.ticks > last->ticks && anchor.monotonic_ns > last->monotonic_ns;
}

void ct_timeline_anchor(struct ct_timeline *timeline)
{
    if (timeline->clock == CT_CLOCK_MONOTONIC)
        return;
    const struct ct_anchor anchor = ct_anchor_read(ANCHOR_TRIES);
    if (!follows(timeline, anchor))
        return;
    if (timeline->count > 1) {
        const struct ct_anchor *last = &timeline->anchor[timeline->count - 1];
        const uint64_t error_ns =
            (uint64_t)(((unsigned __int128)anchor.error_ticks * timeline->line[0]) >> 32);
        if (anchor.monotonic_ns - last->monotonic_ns < ANCHOR_INTERVAL_NS || error_ns > 1000)
            return;
    }
    append(timeline, anchor);
    struct ct_control *control = timeline->control;
    const uint64_t written = atomic_load_explicit(&control->anchors, memory_order_relaxed);
    control->anchor[written % CT_ANCHORS] = anchor;
    atomic_store_explicit(&control->anchors, written + 1, memory_order_release);
}

void ct_timeline_begin(struct ct_timeline *timeline, struct ct_control *control)
{
    *timeline = (struct ct_timeline){ .clock = (enum ct_clock_kind)control->clock, .control = control };
    if (timeline->clock == CT_CLOCK_MONOTONIC)
        return;
    /* Whoever may write there may have: no anchor of the future is taken, which would keep all others out. */
    const struct ct_anchor now = ct_anchor_read(1);
    const uint64_t written = atomic_load_explicit(&control->anchors, memory_order_acquire);
    for (uint64_t i = written > CT_ANCHORS ? written - CT_ANCHORS : 0; i < written; i++) {
        struct ct_anchor anchor;
        memcpy(&anchor, &control->anchor[i % CT_ANCHORS], sizeof(anchor));
        if (follows(timeline, anchor) && anchor.ticks < now.ticks && anchor.monotonic_ns < now.monotonic_ns)
            append(timeline, anchor);
    }
    while (timeline->count < 2) {
        ct_timeline_anchor(timeline);
        nanosleep(&(struct timespec){ .tv_nsec = FIRST_SLOPE_NS }, NULL);
    }
    ct_timeline_anchor(timeline);
}

/* Of a number of ticks that may be anything: no more than 63 bits. */
static uint64_t scale(uint64_t ticks, uint64_t line)
{
    const unsigned __int128 ns = ((unsigned __int128)ticks * line) >> 32;
    return ns < INT64_MAX ? (uint64_t)ns : INT64_MAX;
}

uint64_t ct_timeline_span_ns(const struct ct_timeline *timeline, uint64_t ticks)
{
    if (timeline->clock == CT_CLOCK_MONOTONIC)
        return ticks;
    return scale(ticks, timeline->line[timeline->count - 1]);
}

uint64_t ct_timeline_ns(const struct ct_timeline *timeline, uint64_t ticks, size_t *hint)
{
    if (timeline->clock == CT_CLOCK_MONOTONIC)
        return ticks;
    size_t i = *hint < timeline->count ? *hint : timeline->count - 1;
    while (i + 1 < timeline->count && ticks >= timeline->anchor[i + 1].ticks)
        i++;
    while (i > 0 && ticks < timeline->anchor[i].ticks)
        i--;
    *hint = i;
    const struct ct_anchor *anchor = &timeline->anchor[i];
    if (ticks >= anchor->ticks)
        return anchor->monotonic_ns + scale(ticks - anchor->ticks, timeline->line[i]);
    /* Before the first anchor: its line, backwards. */
    const uint64_t before = scale(anchor->ticks - ticks, timeline->line[i]);
    return before < anchor->monotonic_ns ? anchor->monotonic_ns - before : 0;
}
