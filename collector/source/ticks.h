/* Ticks to CLOCK_MONOTONIC nanoseconds, by straight lines between anchors (proto/clock.h). The kernel slews
 * its clock; an anchor with every batch follows it. Used by the worker thread alone.
 *
 * A time may be wrong by a microsecond while the clock's rate is steady; where a slew begins or ends
 * between two anchors that are T apart, by a quarter of its rate times T, which is 6 us for the 500 ppm of
 * NTP and the 50 ms of a busy collector. Times of the distant past lie between anchors that are a sixteenth
 * of their age apart.
 *
 * If the counter stands still, leaps or begins anew against the clock (suspend, a move to another machine),
 * the log says so, and a new stretch begins: ticks count on from one to the next as if nothing had
 * been. */
#ifndef CT_TIMELINE_H
#define CT_TIMELINE_H

#include "control.h"

#include <stdbool.h>
#include <stddef.h>

enum { CT_STRETCHES = 8 };

/* Ticks as the counter said them, from `first` to `last`, with `shift` added count on from those before. */
struct ct_stretch {
    uint64_t first, last, shift;
};

/* Reads time; a test has its own. */
struct ct_clocks {
    struct ct_anchor (*read)(int tries);
    void (*pause)(uint64_t ns);
};

struct ct_timeline {
    enum ct_clock_kind clock;
    const struct ct_clocks *clocks;
    struct ct_control *control;          /* keeps the anchors for the next daemon; not owned */
    size_t count;                        /* anchors, 2 or more once begun; at most CT_ANCHORS */
    struct ct_anchor anchor[CT_ANCHORS]; /* ticks shifted by their stretches */
    /* line[i] leads from anchor[i] to anchor[i + 1]: nanoseconds a tick, as 32.32 fixed point. */
    uint64_t line[CT_ANCHORS];
    struct ct_stretch stretch[CT_STRETCHES]; /* the last is the one that goes on */
    size_t stretches;
    bool stepped; /* behind the newest anchor the rate is not known yet */
};

/* Takes over what an earlier daemon of the session left in `control`; takes 10 ms to find the first slope.
 * `clocks`: NULL for the machine's. */
void ct_timeline_begin(struct ct_timeline *timeline, struct ct_control *control,
                       const struct ct_clocks *clocks);
/* Takes an anchor, unless the last one is younger than 5 ms or the reading was disturbed; takes 10 ms where
 * the counter has stepped. */
void ct_timeline_anchor(struct ct_timeline *timeline);
/* A number of ticks as nanoseconds, INT64_MAX at most where the clock is a counter. */
uint64_t ct_timeline_span_ns(const struct ct_timeline *timeline, uint64_t ticks);
/* `hint` remembers the line between calls of one caller; start with 0. */
uint64_t ct_timeline_ns(const struct ct_timeline *timeline, uint64_t ticks, size_t *hint);

#endif
