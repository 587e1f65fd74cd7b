/* Declares the exports of libbench_lttng.so for hook_cost. LTTng's code is in this separate library, so that
 * the benchmark runs where it was not built. Loaded by peers.c. */
#ifndef BENCH_TRACEPOINTS_H
#define BENCH_TRACEPOINTS_H

#include "peers.h"

struct bench_tracepoints {
    bench_call *one_event;       /* after the return: its end, without its duration */
    bench_call *clock_and_event; /* the same with its start, which takes one more clock reading */
    bench_call *two_events;      /* at its beginning and at its end */
};

/* Exported under this name. The wrappers call `bare`. */
const struct bench_tracepoints *bench_tracepoints(bench_call *bare);

#endif
