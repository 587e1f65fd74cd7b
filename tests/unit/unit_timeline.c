/* Tests that ticks are converted to CLOCK_MONOTONIC to within a microsecond, and that times never run
 * backwards. A second daemon takes over the anchors. */
#include "clock_source.h"
#include "ticks.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct ct_control control;

static void fail(const char *what, int64_t value)
{
    fprintf(stderr, "%s: %lld\n", what, (long long)value);
    exit(EXIT_FAILURE);
}

static void compare(const struct ct_timeline *timeline, size_t *hint, int64_t tolerance_ns)
{
    const struct ct_anchor now = ct_anchor_read(20);
    const int64_t error = (int64_t)(ct_timeline_ns(timeline, now.ticks, hint) - now.monotonic_ns);
    if (llabs(error) > tolerance_ns)
        fail("nanoseconds beside CLOCK_MONOTONIC", error);
}

int main(void)
{
    char source[CT_CLOCK_SOURCES_BYTES];
    control.clock = ct_clock_choose(source);
    if (control.clock == CT_CLOCK_MONOTONIC) {
        puts("the counter of this machine is not trusted: nothing to convert");
        return 77;
    }
    static struct ct_timeline timeline, second;
    ct_timeline_begin(&timeline, &control, NULL);
    if (timeline.count < 2)
        fail("anchors at the start", (int64_t)timeline.count);
    const uint64_t first = ct_counter_read();
    size_t hint = 0;
    for (int i = 0; i < 40; i++) {
        ct_timeline_anchor(&timeline);
        compare(&timeline, &hint, 1000);
        const uint64_t resume_ns = ct_monotonic_ns() + 6000000; /* past the interval between anchors */
        while (ct_monotonic_ns() < resume_ns)
            ;
    }
    const uint64_t last = ct_counter_read();
    uint64_t before = 0;
    for (uint64_t ticks = first; ticks < last; ticks += (last - first) / 100000 + 1) {
        const uint64_t ns = ct_timeline_ns(&timeline, ticks, &hint);
        if (ns < before)
            fail("time ran backwards by", (int64_t)(before - ns));
        before = ns;
    }
    /* Queries that are out of order must return the same times. */
    size_t other = 0;
    const uint64_t middle = first + (last - first) / 2;
    hint = timeline.count;
    if (ct_timeline_ns(&timeline, middle, &hint) != ct_timeline_ns(&timeline, middle, &other))
        fail("the answer depends on the hint", 0);

    ct_timeline_begin(&second, &control, NULL);
    if (second.count < timeline.count / 2)
        fail("anchors that the second timeline lacks", (int64_t)(timeline.count - second.count));
    hint = 0;
    const int64_t apart =
        (int64_t)(ct_timeline_ns(&second, middle, &hint) - ct_timeline_ns(&timeline, middle, &other));
    if (llabs(apart) > 1000)
        fail("two timelines are apart by", apart);
    return EXIT_SUCCESS;
}
