/* Ticks to CLOCK_MONOTONIC nanoseconds, by straight lines between anchors (proto/clock.h). The kernel slews
 * its clock; an anchor with every batch follows it. Used by the worker thread alone. */
#ifndef CT_TIMELINE_H
#define CT_TIMELINE_H

#include "control.h"

#include <stdbool.h>
#include <stddef.h>

struct ct_timeline {
    enum ct_clock_kind clock;
    struct ct_control *control; /* keeps the anchors for the next daemon; not owned */
    size_t count;               /* anchors, 2 or more once begun; at most CT_ANCHORS */
    struct ct_anchor anchor[CT_ANCHORS];
    /* line[i] leads from anchor[i] to anchor[i + 1]: nanoseconds a tick, as 32.32 fixed point. */
    uint64_t line[CT_ANCHORS];
};

/* Takes over what an earlier daemon of the session left in `control`; takes 10 ms to find the first slope. */
void ct_timeline_begin(struct ct_timeline *timeline, struct ct_control *control);
/* Takes an anchor, unless the last one is younger than 5 ms or the reading was disturbed. */
void ct_timeline_anchor(struct ct_timeline *timeline);
/* A number of ticks as nanoseconds, INT64_MAX at most where the clock is a counter. */
uint64_t ct_timeline_span_ns(const struct ct_timeline *timeline, uint64_t ticks);
/* `hint` remembers the line between calls of one caller; start with 0. */
uint64_t ct_timeline_ns(const struct ct_timeline *timeline, uint64_t ticks, size_t *hint);

#endif
