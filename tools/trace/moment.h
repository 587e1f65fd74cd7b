/* Reads times as people write them, and finds the time that a trace covers. */
#ifndef CT_MOMENT_H
#define CT_MOMENT_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

struct ct_extent {
    int64_t begin_ns, end_ns;   /* CLOCK_MONOTONIC: the start of the first process, the last known moment */
    int64_t realtime_offset_ns; /* the offset that converts these times to nanoseconds since 1970 */
};

/* Returns false if the trace has no process. */
bool ct_trace_extent(sqlite3 *connection, struct ct_extent *extent);
/* For a table of options. Reads a duration such as "1.5ms" or "2s", in seconds without a unit, into an
 * int64_t of nanoseconds. */
struct ct_option;
bool ct_take_span(const struct ct_option *option, const char *value);
/* Returns false after reporting a text that is not a moment. *at_ns is within 126 years of the clock's
 * beginning. */
bool ct_moment_take(const char *command, const char *option, const char *text, const struct ct_extent *extent,
                    int64_t *at_ns);

#endif
