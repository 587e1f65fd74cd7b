/* Declares the exports of libbench_lttng.so for hook_cost. LTTng's code is in this separate library, so that
 * hook_cost also runs if LTTng is not available. Loaded by peers.c. */
#ifndef BENCH_TRACEPOINTS_H
#define BENCH_TRACEPOINTS_H

#include "peers.h"

struct bench_tracepoints {
    bench_call *one_event;       /* one event after the return, with the end but without the duration */
    bench_call *clock_and_event; /* one event with start and end, which needs a second clock reading */
    bench_call *two_events;      /* an event at the start of the call and one at its end */
};

/* Exported under this name. The wrappers call `bare`. */
const struct bench_tracepoints *bench_tracepoints(bench_call *bare);

#endif
