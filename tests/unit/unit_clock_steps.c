/* Tests the timeline on a machine with simulated clocks. The clocks are slewed, the machine is suspended or
 * replaced by another one, clocks are slow to read, and the machine runs for ten days. A step of the counter
 * is logged once, and nothing else is logged. */
#include "log.h"
#include "record.h"
#include "ticks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const uint64_t millisecond = 1000000, second = 1000000000;

/* The simulated machine, whose counter is at `ticks` at the time `now_ns`, and advances by `rate` ticks per
 * nanosecond. */
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
    ct_timeline_begin(&timeline, &control, &clocks);
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

static char log_path[] = "/tmp/unit-clock-steps-XXXXXX";

static void is_logged(int steps)
{
    char line[1024];
    int lines = 0, of_steps = 0;
    FILE *log = fopen(log_path, "r");
    for (; log && fgets(line, sizeof(line), log); lines++)
        of_steps += strstr(line, "warning: the processor's counter stepped by ") != NULL;
    if (log)
        fclose(log);
    if (log && lines == steps && of_steps == steps && truncate(log_path, 0) == 0)
        return;
    fprintf(stderr, "%s: the log has %d lines, %d of steps, and should have %d\n", scene, lines, of_steps,
            steps);
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
        is("the moment of a change", at, at_ns, 13000); /* the rate jumps from one end of the range to the
                                                         * other */
        collect(500 * millisecond);
        is("the present", (uint64_t)ticks, now_ns, 1000);
    }
}

/* Suspends the machine half a second after an anchor was taken. The counter is at `woken` when the machine
 * resumes. */
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
    /* Starts another daemon. */
    ct_timeline_begin(&timeline, &control, &clocks);
    is("the present to another daemon", (uint64_t)ticks, now_ns, 1000);
    is("what returned before, to another daemon", before, before_ns, 1000);
}

/* A step must also be detected if it happens shortly after an anchor, before the next anchor is due. */
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

/* The kernel has stopped using the counter, so reading the kernel's clock takes a system call and 4 us. */
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
        rate = 3 * (1 + 1e-6 * sin(s * cycle)); /* daily temperature cycle */
        go(second);
        ct_timeline_anchor(&timeline);
    }
    is("the start", start, start_ns, 15 * (int64_t)millisecond);
    is("the present", (uint64_t)ticks, now_ns, 2000);
    ct_timeline_begin(&timeline, &control, &clocks);
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

/* Begins with anchors in the control segment, left by a previous daemon or written by any process. */
static void left_over(const char *name, const struct ct_anchor *kept, size_t count)
{
    begin(name, 3);
    memset(&control, 0, sizeof(control));
    control.clock = CT_CLOCK_COUNTER;
    memcpy(control.anchor, kept, count * sizeof(*kept));
    atomic_store(&control.anchors, count);
    ct_timeline_begin(&timeline, &control, &clocks);
    if (now_ns > 1001 * second) {
        fprintf(stderr, "%s: it took %llu s to begin\n", name, (unsigned long long)(now_ns / second - 1000));
        exit(EXIT_FAILURE);
    }
    collect(second);
}

static void left_over_by_others(void)
{
    /* The first tick takes a second, and no tick occurs in the next interval. */
    const struct ct_anchor steep[] = { { (uint64_t)3000e9, 998 * second, 0 },
                                       { (uint64_t)3000e9 + 1, 999 * second, 0 },
                                       { (uint64_t)3000e9 + 1, 999 * second + 6 * millisecond, 0 } };
    left_over("anchors of a clock that stands", steep, sizeof(steep) / sizeof(steep[0]));
    const struct ct_anchor ahead[] = { { (uint64_t)9000e9, 999 * second, 1 } };
    left_over("one anchor, of a counter that was ahead", ahead, 1);
    is("now", (uint64_t)ticks, now_ns, 1000);
}

int main(void)
{
    const int fd = mkstemp(log_path);
    if (fd < 0 || close(fd) != 0)
        return EXIT_FAILURE;
    ct_log_to(log_path);
    left_over_by_others();
    is_logged(1);
    slewed();
    is_logged(0);
    suspended("suspended, the counter going on", -1);
    is_logged(1);
    suspended("suspended, the counter beginning anew", 0);
    is_logged(1);
    suspended_at_once();
    is_logged(1);
    static const double ghz[] = { 2.5, 2.9, 4 };
    for (size_t i = 0; i < sizeof(ghz) / sizeof(ghz[0]); i++) {
        moved(ghz[i]);
        is_logged(1);
    }
    read_slowly();
    is_logged(0);
    ten_days();
    is_logged(0);
    long_calls();
    unlink(log_path);
    return EXIT_SUCCESS;
}
