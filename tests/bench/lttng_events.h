/* Defines the tracepoints of the LTTng-UST peer. LTTng's headers include this file several times. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER cudatrace_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_events.h"

#if !defined(BENCH_LTTNG_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BENCH_LTTNG_EVENTS_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(cudatrace_bench, call_begin, LTTNG_UST_TP_ARGS(uint32_t, function),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, function, function)))

LTTNG_UST_TRACEPOINT_EVENT(cudatrace_bench, call_end, LTTNG_UST_TP_ARGS(uint32_t, function, int32_t, status),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, function, function)
                                                   lttng_ust_field_integer(int32_t, status, status)))

LTTNG_UST_TRACEPOINT_EVENT(cudatrace_bench, call,
                           LTTNG_UST_TP_ARGS(uint64_t, start, uint32_t, function, int32_t, status),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint64_t, start, start)
                                                   lttng_ust_field_integer(uint32_t, function, function)
                                                       lttng_ust_field_integer(int32_t, status, status)))

#endif

#include <lttng/tracepoint-event.h>
