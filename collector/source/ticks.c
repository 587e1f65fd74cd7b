#include "ticks.h"

#include "log.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ANCHOR_INTERVAL_NS = 5000000,
    FIRST_SLOPE_NS = 10000000,
    ANCHOR_TRIES = 5,
    /* The maximum error of an anchor. If no anchor has been that accurate for ERROR_PATIENCE_NS, the limit
     * grows with the possible effect of a slew of 500 ppm. Reading a clock takes microseconds if it needs a
     * system call. */
    ERROR_NS = 1000,
    ERROR_PATIENCE_NS = 2000000000,
    SLEW_PARTS = 2000,
    /* A deviation is a step if it exceeds STEP_NS plus a thousandth of the time since the last anchor. NTP
     * slews and slope errors are always smaller. */
    STEP_NS = 100000,
    STEP_PARTS = 1000,
    /* A small step may really be a change of rate, so it gets a separate line, with an error of a quarter of
     * the step. A step that exceeds this limit is treated as a leap. */
    LEAP_NS = 1000000,
    LEAP_PARTS = 2,
    AHEAD_S = 60, /* no record is newer than the newest anchor by more than this */
};

static void pause_machine(uint64_t ns)
{
    nanosleep(&(struct timespec){ .tv_nsec = (long)ns }, NULL);
}
static const struct ct_clocks machine = { ct_anchor_read, pause_machine };

/* Returns nanoseconds per tick in 32.32 fixed point. Never returns 0, not even for arbitrary anchors from the
 * control segment. */
static uint64_t slope(const struct ct_anchor *from, const struct ct_anchor *to)
{
    const uint64_t ticks = to->ticks > from->ticks ? to->ticks - from->ticks : 1;
    const uint64_t line =
        (uint64_t)(((unsigned __int128)(to->monotonic_ns - from->monotonic_ns) << 32) / ticks);
    return line > 0 ? line : 1;
}

static void append(struct ct_timeline *timeline, struct ct_anchor anchor)
{
    if (timeline->count == CT_ANCHORS) {
        /* Drop every second anchor of the older half, so that fewer anchors still cover the whole past. */
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

/* Converts any number of ticks to nanoseconds. The result has at most 63 bits. */
static uint64_t ticks_to_ns(uint64_t ticks, uint64_t line)
{
    const unsigned __int128 ns = ((unsigned __int128)ticks * line) >> 32;
    return ns < INT64_MAX ? (uint64_t)ns : INT64_MAX;
}

static uint64_t ns_to_ticks(uint64_t ns, uint64_t line)
{
    return (uint64_t)(((unsigned __int128)ns << 32) / line);
}

/* Begins a new stretch between the newest anchor and the reading `now`, which was taken `awake` ticks after
 * that anchor. The ticks in between belong to both stretches, and a lookup tries the newer one first. */
static void begin_stretch(struct ct_timeline *timeline, uint64_t now, uint64_t awake)
{
    const struct ct_anchor *last = &timeline->anchor[timeline->count - 1];
    if (timeline->stretches == CT_STRETCHES)
        memmove(timeline->stretch, timeline->stretch + 1,
                --timeline->stretches * sizeof(timeline->stretch[0]));
    struct ct_stretch *old = &timeline->stretch[timeline->stretches - 1];
    old->last = last->ticks - old->shift + awake;
    timeline->stretch[timeline->stretches++] = (struct ct_stretch){ .first = now > awake ? now - awake : 0,
                                                                    .last = UINT64_MAX,
                                                                    .shift = last->ticks + awake - now };
}

enum verdict { REFUSED, TAKEN, STEPPED };

/* Checks a reading, and makes it the newest anchor unless it is refused. If the reading shows a step, sets
 * *off_ns to the size of the step. */
static enum verdict admit(struct ct_timeline *timeline, struct ct_anchor anchor, int64_t *off_ns)
{
    if (timeline->count == 0) {
        timeline->stretch[0] = (struct ct_stretch){ 0, UINT64_MAX, 0 };
        timeline->stretches = 1;
        append(timeline, anchor);
        return TAKEN;
    }
    const struct ct_anchor *last = &timeline->anchor[timeline->count - 1];
    if (anchor.monotonic_ns <= last->monotonic_ns)
        return REFUSED;
    const uint64_t now = anchor.ticks, elapsed_ns = anchor.monotonic_ns - last->monotonic_ns;
    anchor.ticks += timeline->stretch[timeline->stretches - 1].shift;
    if (timeline->count == 1 || timeline->stepped) {
        if (anchor.ticks <= last->ticks)
            return REFUSED;
        timeline->stepped = false;
        append(timeline, anchor);
        return TAKEN;
    }
    const uint64_t line = timeline->line[timeline->count - 1], awake = ns_to_ticks(elapsed_ns, line);
    const uint64_t error_ns = ticks_to_ns(anchor.error_ticks, line);
    const uint64_t expected = last->ticks + awake;
    const bool ahead = (int64_t)(anchor.ticks - expected) > 0;
    const uint64_t off = ticks_to_ns(ahead ? anchor.ticks - expected : expected - anchor.ticks, line);
    if (off <= STEP_NS + elapsed_ns / STEP_PARTS + error_ns) {
        const uint64_t waited_ns = elapsed_ns > ERROR_PATIENCE_NS ? elapsed_ns - ERROR_PATIENCE_NS : 0;
        if (elapsed_ns < ANCHOR_INTERVAL_NS || error_ns > ERROR_NS + waited_ns / SLEW_PARTS)
            return REFUSED;
        append(timeline, anchor);
        return TAKEN;
    }
    *off_ns = ahead ? (int64_t)off : -(int64_t)off;
    if (off > LEAP_NS + elapsed_ns / LEAP_PARTS) {
        begin_stretch(timeline, now, awake);
        anchor.ticks = expected;
    }
    timeline->stepped = true;
    append(timeline, anchor);
    return STEPPED;
}

static void keep(struct ct_control *control, struct ct_anchor anchor)
{
    const uint64_t written = atomic_load_explicit(&control->anchors, memory_order_relaxed);
    control->anchor[ct_anchor_place(written)] = anchor;
    atomic_store_explicit(&control->anchors, written + 1, memory_order_release);
}

void ct_timeline_anchor(struct ct_timeline *timeline)
{
    if (timeline->clock == CT_CLOCK_MONOTONIC)
        return;
    int64_t off_ns;
    struct ct_anchor anchor = timeline->clocks->read(ANCHOR_TRIES);
    const enum verdict verdict = admit(timeline, anchor, &off_ns);
    if (verdict == REFUSED)
        return;
    keep(timeline->control, anchor);
    if (verdict == TAKEN)
        return;
    ct_log(CT_LOG_clock_stepped,
           "the processor's counter stepped by %lld us against CLOCK_MONOTONIC (a suspend, or a move to "
           "another machine?); times of calls in the previous second may be wrong by as much",
           (long long)(off_ns / 1000));
    timeline->clocks->pause(FIRST_SLOPE_NS);
    anchor = timeline->clocks->read(ANCHOR_TRIES);
    if (admit(timeline, anchor, &off_ns) != REFUSED)
        keep(timeline->control, anchor);
}

static int by_time(const void *a, const void *b)
{
    const uint64_t left = ((const struct ct_anchor *)a)->monotonic_ns;
    const uint64_t right = ((const struct ct_anchor *)b)->monotonic_ns;
    return (left > right) - (left < right);
}

void ct_timeline_begin(struct ct_timeline *timeline, struct ct_control *control,
                       const struct ct_clocks *clocks)
{
    *timeline = (struct ct_timeline){ .clock = (enum ct_clock_kind)control->clock,
                                      .clocks = clocks ? clocks : &machine,
                                      .control = control };
    if (timeline->clock == CT_CLOCK_MONOTONIC)
        return;
    struct ct_anchor kept[CT_ANCHORS];
    memcpy(kept, control->anchor, sizeof(kept));
    const uint64_t written = atomic_load_explicit(&control->anchors, memory_order_acquire);
    kept[ct_anchor_place(written)].monotonic_ns = 0; /* perhaps half written */
    qsort(kept, CT_ANCHORS, sizeof(kept[0]), by_time);
    /* Any process that can write to the segment may have forged an anchor, and an anchor in the future would
     * cause all others to be refused. */
    const uint64_t now_ns = timeline->clocks->read(1).monotonic_ns;
    int64_t off_ns;
    for (size_t i = 0; i < CT_ANCHORS; i++) {
        if (kept[i].monotonic_ns > 0 && kept[i].monotonic_ns < now_ns)
            admit(timeline, kept[i], &off_ns);
    }
    /* A single anchor defines no line, and if it came from another machine's counter, it would cause all
     * later anchors to be refused. */
    if (timeline->count < 2)
        timeline->count = 0;
    while (timeline->count < 2) {
        ct_timeline_anchor(timeline);
        timeline->clocks->pause(FIRST_SLOPE_NS);
    }
    ct_timeline_anchor(timeline);
}

/* Adds the shift of the stretch that contains the ticks. Searches backwards from the newest stretch. */
static uint64_t shifted(const struct ct_timeline *timeline, uint64_t ticks)
{
    const struct ct_stretch *newest = &timeline->stretch[timeline->stretches - 1];
    const size_t n = timeline->count - 1;
    const uint64_t ahead = ns_to_ticks(AHEAD_S * UINT64_C(1000000000), timeline->line[n]);
    if (ticks >= newest->first && ticks <= timeline->anchor[n].ticks - newest->shift + ahead)
        return ticks + newest->shift;
    for (const struct ct_stretch *stretch = newest; stretch-- > timeline->stretch;) {
        if (ticks >= stretch->first && ticks <= stretch->last)
            return ticks + stretch->shift;
    }
    return ticks + newest->shift;
}

uint64_t ct_timeline_span_ns(const struct ct_timeline *timeline, uint64_t ticks)
{
    if (timeline->clock == CT_CLOCK_MONOTONIC)
        return ticks;
    return ticks_to_ns(ticks, timeline->line[timeline->count - 1]);
}

uint64_t ct_timeline_ns(const struct ct_timeline *timeline, uint64_t ticks, size_t *hint)
{
    if (timeline->clock == CT_CLOCK_MONOTONIC)
        return ticks;
    if (timeline->stretches > 1)
        ticks = shifted(timeline, ticks);
    size_t i = *hint < timeline->count ? *hint : timeline->count - 1;
    while (i + 1 < timeline->count && ticks >= timeline->anchor[i + 1].ticks)
        i++;
    while (i > 0 && ticks < timeline->anchor[i].ticks)
        i--;
    *hint = i;
    const struct ct_anchor *anchor = &timeline->anchor[i];
    if (ticks >= anchor->ticks)
        return anchor->monotonic_ns + ticks_to_ns(ticks - anchor->ticks, timeline->line[i]);
    /* Before the first anchor, extend the first line backwards. */
    const uint64_t before = ticks_to_ns(anchor->ticks - ticks, timeline->line[i]);
    return before < anchor->monotonic_ns ? anchor->monotonic_ns - before : 0;
}
