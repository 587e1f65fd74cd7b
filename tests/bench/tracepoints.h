/* Declares what libbench_lttng.so gives to hook_cost. LTTng's code is in this library of its own, so that the
 * benchmark runs where it was not built. Loaded by peers.c. */
#ifndef BENCH_TRACEPOINTS_H
#define BENCH_TRACEPOINTS_H

#include "peers.h"

struct bench_tracepoints {
    bench_call *one_event;       /* when the call has returned: its end, and not how long it took */
    bench_call *clock_and_event; /* the same, with the start in it by one more clock reading */
    bench_call *two_events;      /* at its begin and at its end */
};

/* Exported under this name. `bare` is what the wrappers call. */
const struct bench_tracepoints *bench_tracepoints(bench_call *bare);

#endif
