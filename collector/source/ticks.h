/* Converts ticks to CLOCK_MONOTONIC nanoseconds by linear interpolation between anchors (proto/clock.h). The
 * kernel slews its clock, so an anchor is taken with every batch. Used only by the worker thread.
 *
 * While the clock's rate is steady, a converted time may be off by up to a microsecond. If a slew begins or
 * ends between two anchors, the error is at most a quarter of the slew's rate times the time between them.
 * For NTP's 500 ppm and the 50 ms between a busy collector's anchors, the error is 6 us. Anchors in the
 * distant past are farther apart, by up to a sixteenth of their age.
 *
 * The counter may stop, leap or restart relative to the clock, for example after a suspend or a move to
 * another machine. Each such event is logged, and begins a new stretch. Ticks continue from one stretch to
 * the next as if nothing had happened. */
#ifndef CT_TIMELINE_H
#define CT_TIMELINE_H

#include "control.h"

#include <stdbool.h>
#include <stddef.h>

enum { CT_STRETCHES = 8 };

/* The counter's ticks from `first` to `last`. When `shift` is added, these ticks continue those of the
 * previous stretch. */
struct ct_stretch {
    uint64_t first, last, shift;
};

/* Functions for reading the time and for waiting. Tests replace these functions. */
struct ct_clocks {
    struct ct_anchor (*read)(int tries);
    void (*pause)(uint64_t ns);
};

struct ct_timeline {
    enum ct_clock_kind clock;
    const struct ct_clocks *clocks;
    struct ct_control *control;          /* keeps the anchors for the next daemon; not owned */
    size_t count;                        /* anchors in use: at least 2 once begun, at most CT_ANCHORS */
    struct ct_anchor anchor[CT_ANCHORS]; /* each anchor's ticks include the shift of its stretch */
    /* line[i] is the slope from anchor[i] to anchor[i + 1]: nanoseconds per tick in 32.32 fixed point. */
    uint64_t line[CT_ANCHORS];
    struct ct_stretch stretch[CT_STRETCHES]; /* the last one is current */
    size_t stretches;
    bool stepped; /* the rate after the newest anchor is not known yet */
};

/* Takes over the anchors that an earlier daemon of the session left in `control`. If there are fewer than two
 * anchors, takes 20 ms to determine the first slope. Uses the machine's clocks if `clocks` is NULL. */
void ct_timeline_begin(struct ct_timeline *timeline, struct ct_control *control,
                       const struct ct_clocks *clocks);
/* Takes an anchor, unless the last anchor is less than 5 ms old or the reading is disturbed. Needs 10 ms if
 * the counter has stepped. */
void ct_timeline_anchor(struct ct_timeline *timeline);
/* Converts a duration from ticks to nanoseconds. Returns at most INT64_MAX if the clock is a counter. */
uint64_t ct_timeline_span_ns(const struct ct_timeline *timeline, uint64_t ticks);
/* Converts a time from ticks to nanoseconds. `hint` remembers the line between two anchors that the last
 * conversion used, and is 0 before the first conversion. */
uint64_t ct_timeline_ns(const struct ct_timeline *timeline, uint64_t ticks, size_t *hint);

#endif
