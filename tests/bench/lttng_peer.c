/* The LTTng-UST peer: wrappers around a driver call that hit LTTng-UST's tracepoints. See tracepoints.h. */
#include "tracepoints.h"

#include "clock.h"

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_events.h"

#define EXPORT __attribute__((visibility("default")))

enum { FUNCTION = 7 };

static bench_call *real;

__attribute__((noinline)) static int one_event(void **context)
{
    const int status = real(context);
    lttng_ust_tracepoint(cudatrace_bench, call_end, FUNCTION, status);
    return status;
}

__attribute__((noinline)) static int clock_and_event(void **context)
{
    const uint64_t start = ct_monotonic_ns();
    const int status = real(context);
    lttng_ust_tracepoint(cudatrace_bench, call, start, FUNCTION, status);
    return status;
}

__attribute__((noinline)) static int two_events(void **context)
{
    lttng_ust_tracepoint(cudatrace_bench, call_begin, FUNCTION);
    const int status = real(context);
    lttng_ust_tracepoint(cudatrace_bench, call_end, FUNCTION, status);
    return status;
}

EXPORT const struct bench_tracepoints *bench_tracepoints(bench_call *bare)
{
    static const struct bench_tracepoints all = { one_event, clock_and_event, two_events };
    real = bare;
    return &all;
}
