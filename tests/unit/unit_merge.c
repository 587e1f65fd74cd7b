/* The merge yields the calls of all sources in the order of their return, each once, and none behind the
 * watermark. */
#include "merge.h"

#include <stdio.h>
#include <stdlib.h>

enum { SOURCES = 300, CALLS = 400 };

struct array_source {
    struct ct_source source;
    uint64_t ends[CALLS];
    int at;
};

static struct array_source sources[SOURCES];

static bool peek(struct ct_source *base, uint64_t until_ns)
{
    struct array_source *source = (struct array_source *)base;
    if (source->at == CALLS)
        return false;
    base->end_ns = source->ends[source->at];
    return base->end_ns <= until_ns;
}

static void take(struct ct_source *base, struct ct_row *row)
{
    struct array_source *source = (struct array_source *)base;
    *row = (struct ct_row){ .end_ns = source->ends[source->at++], .site_id = source - sources };
}

static const struct ct_source_class array_class = { .peek = peek, .take = take };

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(EXIT_FAILURE);
}

int main(void)
{
    uint64_t until_ns = 0;
    srand(1);
    for (int s = 0; s < SOURCES; s++) {
        sources[s].source.class = &array_class;
        uint64_t end = 0;
        for (int c = 0; c < CALLS; c++) /* ties within and between sources */
            sources[s].ends[c] = end += (uint64_t)rand() % 4;
        until_ns = end > until_ns ? end : until_ns;
    }
    struct ct_merge merge = { 0 };
    uint64_t before = 0, taken = 0;
    /* In several merges with rising watermarks, as batches are. */
    for (uint64_t step = 0; step <= 4; step++) {
        const uint64_t until = until_ns * step / 4;
        ct_merge_begin(&merge, until);
        for (int s = 0; s < SOURCES; s++) {
            if (ct_merge_add(&merge, &sources[s].source) != 0)
                fail("out of memory");
        }
        struct ct_row row;
        while (ct_merge_next(&merge, &row)) {
            if (row.end_ns < before)
                fail("a call came before an earlier one");
            if (row.end_ns > until)
                fail("a call came from behind the watermark");
            before = row.end_ns;
            taken++;
        }
        for (int s = 0; s < SOURCES; s++) {
            if (sources[s].at < CALLS && sources[s].ends[sources[s].at] <= until)
                fail("a call before the watermark was left");
        }
    }
    ct_merge_finish(&merge);
    if (taken != (uint64_t)SOURCES * CALLS)
        fail("calls are missing");
    return EXIT_SUCCESS;
}
