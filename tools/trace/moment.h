/* Parses times as users write them, and finds the time span that a trace covers. */
#ifndef CT_MOMENT_H
#define CT_MOMENT_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

struct ct_extent {
    int64_t begin_ns, end_ns;   /* CLOCK_MONOTONIC: the start of the first process, and the last known time */
    int64_t realtime_offset_ns; /* the offset that converts these times to nanoseconds since 1970 */
};

/* Finds the trace's extent. If a process is running, a trace that a daemon writes extends to now_ns, which is
 * the CLOCK_MONOTONIC time, or 0 if no daemon writes the trace. Returns false if the trace has no processes.
 */
bool ct_trace_extent(sqlite3 *connection, int64_t now_ns, struct ct_extent *extent);
/* For option tables. Parses a duration such as "1.5ms" or "2s" into an int64_t of nanoseconds. Without a
 * unit, the number is in seconds. */
struct ct_option;
bool ct_take_span(const struct ct_option *option, const char *value);
/* Parses a point in time. Returns false after reporting text that is not a valid time. *at_ns is within 126
 * years of the clock's zero. */
bool ct_moment_take(const char *command, const char *option, const char *text, const struct ct_extent *extent,
                    int64_t *at_ns);

#endif
