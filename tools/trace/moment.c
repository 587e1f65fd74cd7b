#include "moment.h"

#include "number.h"
#include "options.h"
#include "say.h"
#include "trace_file.h"

#include <math.h>
#include <string.h>
#include <time.h>

bool ct_trace_extent(sqlite3 *connection, int64_t now_ns, struct ct_extent *extent)
{
    extent->begin_ns = ct_ask_number(connection, "SELECT min(started_ns) FROM processes", 0, -1);
    /* Do not use max(), which would read the whole trace if it has several files. */
    extent->end_ns =
        ct_ask_number(connection, "SELECT call_id FROM calls ORDER BY call_id DESC LIMIT 1", 0, -1);
    extent->end_ns = ct_ask_number(connection, "SELECT max(?1, (SELECT max(ended_ns) FROM processes))",
                                   extent->end_ns, extent->end_ns);
    if (now_ns > extent->end_ns &&
        ct_ask_number(connection, "SELECT 1 FROM processes WHERE ended_ns IS NULL LIMIT 1", 0, 0))
        extent->end_ns = now_ns;
    extent->realtime_offset_ns =
        ct_ask_number(connection, "SELECT value FROM meta WHERE key = 'realtime_offset_ns'", 0, 0);
    return extent->begin_ns >= 0 && extent->end_ns >= extent->begin_ns;
}

/* Large enough for any clock, and small enough that sums of a few such times do not overflow. */
#define MOMENT_MAX_NS INT64_C(4000000000000000000)

/* The result of parsing a time: not a time, too far away to be counted in nanoseconds, or valid. */
enum reading { NONE, FAR, READ };

/* Parses a duration such as "12.5" or "350ms" into nanoseconds. */
static enum reading read_span(const char *text, int64_t *ns)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = { { "", 1e9 }, { "s", 1e9 },  { "ms", 1e6 },  { "us", 1e3 },
                  { "ns", 1 }, { "m", 60e9 }, { "h", 3600e9 } };
    double value = 0;
    const size_t length = ct_decimal_parse(text, &value);
    for (size_t i = 0; length > 0 && i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(text + length, units[i].unit) != 0)
            continue;
        if (value * units[i].ns >= (double)MOMENT_MAX_NS)
            return FAR;
        *ns = llround(value * units[i].ns);
        return READ;
    }
    return NONE;
}

bool ct_take_span(const struct ct_option *option, const char *value)
{
    return read_span(value, option->to) == READ;
}

/* Adds a duration, which may be negative, to a time in the trace. */
static enum reading add_span(int64_t moment_ns, int64_t span_ns, int64_t *at_ns)
{
    if (__builtin_add_overflow(moment_ns, span_ns, at_ns) || *at_ns > MOMENT_MAX_NS ||
        *at_ns < -MOMENT_MAX_NS)
        return FAR;
    return READ;
}

/* Converts a local time with mktime(). Rejects dates that do not exist, because mktime() would accept the
 * 31st of April as the 1st of May. */
static enum reading read_time(struct tm *time, int64_t fraction_ns, const struct ct_extent *extent,
                              int64_t *at_ns)
{
    const struct tm said = *time;
    const time_t seconds = mktime(time);
    if (time->tm_mday != said.tm_mday || time->tm_mon != said.tm_mon || time->tm_sec != said.tm_sec)
        return NONE;
    int64_t ns;
    if (__builtin_mul_overflow((int64_t)seconds, INT64_C(1000000000), &ns) ||
        __builtin_add_overflow(ns, fraction_ns, &ns) ||
        __builtin_sub_overflow(ns, extent->realtime_offset_ns, &ns))
        return FAR;
    return add_span(ns, 0, at_ns);
}

/* Parses a local time such as "14:03:02.5" or "2026-11-22 14:03:02". If there is no date, assumes the day on
 * which the trace began. */
static enum reading read_clock(const char *text, const struct ct_extent *extent, int64_t *at_ns)
{
    static const char *const forms[] = { "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M",
                                         "%H:%M:%S", "%H:%M" };
    const time_t began = (time_t)((extent->begin_ns + extent->realtime_offset_ns) / 1000000000);
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct tm time;
        if (!localtime_r(&began, &time))
            return NONE;
        time.tm_sec = 0;
        time.tm_isdst = -1;
        const char *rest = strptime(text, forms[i], &time);
        double fraction = 0;
        if (rest && *rest == '.' && forms[i][strlen(forms[i]) - 1] == 'S')
            rest += ct_decimal_parse(rest, &fraction);
        if (!rest || *rest)
            continue;
        const enum reading reading = read_time(&time, llround(fraction * 1e9), extent, at_ns);
        const int64_t day_ns = INT64_C(86400) * 1000000000;
        if (reading == READ && forms[i][1] == 'H' && *at_ns < extent->begin_ns &&
            *at_ns + day_ns <= extent->end_ns)
            *at_ns += day_ns; /* the time is after midnight */
        return reading;
    }
    return NONE;
}

static enum reading read_moment(const char *text, const struct ct_extent *extent, int64_t *at_ns)
{
    int64_t span_ns;
    if (*text == '@') {
        return ct_number_parse(text + 1, 0, MOMENT_MAX_NS, at_ns) ? READ
               : ct_is_digits(text + 1)                           ? FAR
                                                                  : NONE;
    }
    const bool from_end = *text == '-';
    const enum reading reading = read_span(text + (from_end || *text == '+'), &span_ns);
    if (reading == READ)
        return from_end ? add_span(extent->end_ns, -span_ns, at_ns)
                        : add_span(extent->begin_ns, span_ns, at_ns);
    return reading == FAR ? FAR : read_clock(text, extent, at_ns);
}

bool ct_moment_take(const char *command, const char *option, const char *text, const struct ct_extent *extent,
                    int64_t *at_ns)
{
    const enum reading reading = read_moment(text, extent, at_ns);
    if (reading != READ)
        ct_fail(EXIT_USAGE, "%s: invalid value '%s' for --%s: %s", command, text, option,
                reading == FAR ? "too far from the trace to be counted in nanoseconds"
                               : "expected seconds since the trace began, such as 12.5 or 350ms (for other "
                                 "forms see --help)");
    return reading == READ;
}
