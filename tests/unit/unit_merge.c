/* Tests that the merge yields every call of every stream exactly once, sorted by return time, and no call
 * after the watermark. A record that is not a call is returned before the call that it precedes. A stream
 * that has used up its budget is skipped. */
#include "merge.h"

#include <stdio.h>
#include <stdlib.h>

enum { STREAMS = 300, CALLS = 400, FILLED = 7 };

/* A stream that provides a few calls at a time, and discards them when it provides the next ones. */
struct array_stream {
    struct ct_stream stream;
    uint64_t ends[CALLS];
    struct ct_call call[FILLED];
    int at, taken;
};

static struct array_stream streams[STREAMS];

static bool fill(struct ct_stream *base, uint64_t until_ns)
{
    struct array_stream *stream = (struct array_stream *)base;
    base->next = base->end = stream->call;
    while (stream->at < CALLS && stream->ends[stream->at] <= until_ns && base->end < stream->call + FILLED)
        *base->end++ = (struct ct_call){ .end_ns = stream->ends[stream->at++],
                                         .kind = CT_KIND_CALL,
                                         .value = (uint64_t)(stream - streams) };
    return base->next < base->end;
}

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(EXIT_FAILURE);
}

static void check_order(void)
{
    uint64_t until_ns = 0;
    srand(1);
    for (int s = 0; s < STREAMS; s++) {
        streams[s].stream.fill = fill;
        uint64_t end = 0;
        for (int c = 0; c < CALLS; c++) /* ties within and between streams */
            streams[s].ends[c] = end += (uint64_t)rand() % 4;
        until_ns = end > until_ns ? end : until_ns;
    }
    struct ct_merge merge = { 0 };
    uint64_t before = 0, taken = 0;
    /* Run several merges with rising watermarks, as batches do. */
    for (uint64_t step = 0; step <= 4; step++) {
        const uint64_t until = until_ns * step / 4;
        ct_merge_begin(&merge, until);
        for (int s = 0; s < STREAMS; s++) {
            if (ct_merge_add(&merge, &streams[s].stream) != 0)
                fail("out of memory");
        }
        for (const struct ct_call *call; (call = ct_merge_first(&merge)) != NULL; ct_merge_take(&merge)) {
            if (call->end_ns < before)
                fail("a call came before an earlier one");
            if (call->end_ns > until)
                fail("a call came from behind the watermark");
            before = call->end_ns;
            streams[call->value].taken++;
            taken++;
        }
        for (int s = 0; s < STREAMS; s++) {
            if (streams[s].taken < CALLS && streams[s].ends[streams[s].taken] <= until)
                fail("a call before the watermark was left");
        }
    }
    ct_merge_finish(&merge);
    if (taken != (uint64_t)STREAMS * CALLS)
        fail("calls are missing");
}

static bool no_more(struct ct_stream *stream, uint64_t until_ns)
{
    (void)until_ns;
    return stream->next < stream->end;
}

/* The first stream contains a name, which precedes a call that returns late. The second stream contains two
 * calls, and has a budget of one call. */
static void check_notes_and_budgets(void)
{
    struct ct_call late[] = { { .end_ns = 9, .kind = CT_KIND_NAME }, { .end_ns = 5, .kind = CT_KIND_CALL } };
    struct ct_call spent[] = { { .end_ns = 1, .kind = CT_KIND_CALL }, { .end_ns = 2, .kind = CT_KIND_CALL } };
    struct ct_budget budget = { .allowance = 1 };
    struct ct_stream first = { no_more, late, late + 2, NULL },
                     second = { no_more, spent, spent + 2, &budget };
    struct ct_merge merge = { 0 };
    ct_merge_begin(&merge, 5);
    if (ct_merge_add(&merge, &first) != 0 || ct_merge_add(&merge, &second) != 0)
        fail("out of memory");
    if (ct_merge_first(&merge) != &late[0])
        fail("a note waits for its call");
    ct_merge_take(&merge);
    if (ct_merge_first(&merge) != &spent[0])
        fail("the earliest call is not first");
    budget.spent = 1;
    ct_merge_take(&merge);
    if (ct_merge_first(&merge) != &late[1] || !budget.is_held)
        fail("who has spent what he may goes on");
    ct_merge_take(&merge);
    if (ct_merge_first(&merge) || second.next != &spent[1])
        fail("more is taken than there is");
    ct_merge_finish(&merge);
}

int main(void)
{
    check_order();
    check_notes_and_budgets();
    return EXIT_SUCCESS;
}
