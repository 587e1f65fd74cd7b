/* The timeline on a machine whose clocks are made up: slewed, suspended, moved to another machine, read
 * slowly, and running for ten days. */
#include "record.h"
#include "timeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t millisecond = 1000000, second = 1000000000;

/* The machine: the counter has `ticks` at `now_ns`, and goes on at `rate` ticks a nanosecond. */
static uint64_t now_ns;
static double ticks, rate;
static uint64_t error_ticks;

static void go(uint64_t ns)
{
    now_ns += ns;
    ticks += (double)ns * rate;
}
static struct ct_anchor read_clocks(int tries)
{
    (void)tries;
    return (struct ct_anchor){ (uint64_t)ticks, now_ns, error_ticks };
}
static const struct ct_clocks clocks = { read_clocks, go };

static struct ct_control control;
static struct ct_timeline timeline;
static const char *scene;

static void begin(const char *name, double ghz)
{
    scene = name;
    now_ns = 1000 * second;
    ticks = 3000e9;
    rate = ghz;
    error_ticks = 60;
    memset(&control, 0, sizeof(control));
    control.clock = CT_CLOCK_COUNTER;
    ct_timeline_begin_with(&timeline, &control, &clocks);
}

/* A batch every 50 ms. */
static void collect(uint64_t ns)
{
    for (const uint64_t until_ns = now_ns + ns; now_ns < until_ns;) {
        go(50 * millisecond);
        ct_timeline_anchor(&timeline);
    }
}

static void is(const char *what, uint64_t at_ticks, uint64_t wanted_ns, int64_t within_ns)
{
    size_t hint = 0;
    const int64_t off = (int64_t)(ct_timeline_ns(&timeline, at_ticks, &hint) - wanted_ns);
    if (llabs(off) <= within_ns)
        return;
    fprintf(stderr, "%s: %s is off by %lld ns\n", scene, what, (long long)off);
    exit(EXIT_FAILURE);
}

static void slewed(void)
{
    begin("slewed by 500 ppm", 3);
    for (int i = 0; i < 40; i++) {
        collect(50 * millisecond);
        go(20 * millisecond);
        rate = 3 * (i % 2 ? 1.0005 : 0.9995);
        const uint64_t at = (uint64_t)ticks, at_ns = now_ns;
        go(30 * millisecond);
        ct_timeline_anchor(&timeline);
        is("the moment of a change", at, at_ns, 13000); /* from end to end of the range */
        collect(500 * millisecond);
        is("the present", (uint64_t)ticks, now_ns, 1000);
    }
}

/* Half a second behind an anchor the machine sleeps, and the counter is then at `woken`. */
static void suspended(const char *name, double woken)
{
    begin(name, 3);
    collect(10 * second);
    const uint64_t start = (uint64_t)ticks, start_ns = now_ns;
    go(400 * millisecond);
    const uint64_t before = (uint64_t)ticks, before_ns = now_ns;
    go(100 * millisecond);
    ticks = woken < 0 ? ticks + 3600e9 * rate : woken;
    go(2 * millisecond);
    const uint64_t after = (uint64_t)ticks, after_ns = now_ns;
    go(3 * millisecond);
    ct_timeline_anchor(&timeline);
    is("what returned before", before, before_ns, 1000);
    is("what returned after", after, after_ns, 1000);
    is("the present", (uint64_t)ticks, now_ns, 1000);
    const struct ct_record across = { .end = after, .span = ct_span(after - start, 0, 0) };
    is("the start of a call across", ct_record_start(&across), start_ns, 1000);
    collect(20 * second);
    is("what returned before, later", before, before_ns, 1000);
    is("the present, later", (uint64_t)ticks, now_ns, 1000);
    /* Another daemon. */
    ct_timeline_begin_with(&timeline, &control, &clocks);
    is("the present to another daemon", (uint64_t)ticks, now_ns, 1000);
    is("what returned before, to another daemon", before, before_ns, 1000);
}

/* A step behind an anchor that is younger than the interval between them is seen all the same. */
static void suspended_at_once(void)
{
    begin("suspended behind an anchor", 3);
    collect(second);
    ticks += 60e9 * rate;
    go(millisecond);
    ct_timeline_anchor(&timeline);
    is("the present", (uint64_t)ticks, now_ns, 1000);
}

static void moved(double ghz)
{
    begin("moved to a machine with another counter", 3);
    collect(10 * second);
    const uint64_t before = (uint64_t)ticks, before_ns = now_ns;
    rate = ghz;
    go(50 * millisecond);
    ct_timeline_anchor(&timeline);
    is("what returned before", before, before_ns, 1000);
    for (int i = 0; i < 100; i++) {
        go(7 * millisecond);
        is("the present", (uint64_t)ticks, now_ns, 1000);
        ct_timeline_anchor(&timeline);
    }
}

/* The kernel has given up the counter: its own clock is read in 4 us, by a system call. */
static void read_slowly(void)
{
    begin("a clock that is read slowly", 3);
    collect(10 * second);
    error_ticks = 12000;
    rate *= 1.0001;
    collect(30 * second);
    for (int i = 0; i < 100; i++) {
        collect(100 * millisecond);
        is("the present", (uint64_t)ticks, now_ns, 4000);
    }
}

static void ten_days(void)
{
    enum { DAYS = 10, DAY_S = 86400 };
    begin("ten days", 3);
    const double cycle = 2 * 3.14159265358979 / DAY_S;
    uint64_t start = 0, start_ns = 0;
    for (int s = 0; s < DAYS * DAY_S; s++) {
        if (s == DAY_S / 5) {
            start = (uint64_t)ticks;
            start_ns = now_ns;
        }
        rate = 3 * (1 + 1e-6 * sin(s * cycle)); /* the warmth of the day */
        go(second);
        ct_timeline_anchor(&timeline);
    }
    is("the start", start, start_ns, 15 * (int64_t)millisecond);
    is("the present", (uint64_t)ticks, now_ns, 2000);
    ct_timeline_begin_with(&timeline, &control, &clocks);
    is("the start to another daemon", start, start_ns, 15 * (int64_t)millisecond);
    is("the present to another daemon", (uint64_t)ticks, now_ns, 2000);
}

static void long_calls(void)
{
    static const uint64_t span_s[] = { 600, 36000, 864000 };
    static const double ghz[] = { 1, 3, 5 };
    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k < 3; k++) {
            const uint64_t span = (uint64_t)((double)(span_s[i] * second) * ghz[k]), end = span + 12345;
            const struct ct_record record = { .end = end, .span = ct_span(span, 3, 0) };
            if (ct_record_start(&record) != 12345) {
                fprintf(stderr, "a call of %llu s loses its start\n", (unsigned long long)span_s[i]);
                exit(EXIT_FAILURE);
            }
        }
    }
}

int main(void)
{
    slewed();
    suspended("suspended, the counter going on", -1);
    suspended("suspended, the counter beginning anew", 0);
    suspended_at_once();
    moved(2.5);
    moved(2.9);
    moved(4);
    read_slowly();
    ten_days();
    long_calls();
    return EXIT_SUCCESS;
}
