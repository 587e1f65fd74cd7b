/* Moments of a trace as people write them: --from and --to. Called by report.c. */
#include "cudatrace.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t ask(sqlite3 *connection, const char *sql, int64_t otherwise)
{
    sqlite3_stmt *statement;
    int64_t value = otherwise;
    if (sqlite3_prepare_v2(connection, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_type(statement, 0) == SQLITE_INTEGER)
        value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

bool ct_trace_extent(sqlite3 *connection, struct ct_extent *extent)
{
    extent->begin_ns = ask(connection, "SELECT min(started_ns) FROM processes", -1);
    extent->end_ns = ask(connection, "SELECT max(call_id) FROM calls", -1);
    const int64_t ended_ns = ask(connection, "SELECT max(ended_ns) FROM processes", -1);
    if (ended_ns > extent->end_ns)
        extent->end_ns = ended_ns;
    extent->realtime_offset_ns =
        ask(connection, "SELECT value FROM meta WHERE key = 'realtime_offset_ns'", 0);
    return extent->begin_ns >= 0 && extent->end_ns >= extent->begin_ns;
}

/* "12.5", "350ms": nanoseconds. */
static bool parse_span(const char *text, int64_t *ns)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = { { "", 1e9 }, { "s", 1e9 },  { "ms", 1e6 },  { "us", 1e3 },
                  { "ns", 1 }, { "m", 60e9 }, { "h", 3600e9 } };
    char *end;
    if (!strchr("0123456789.", *text))
        return false;
    errno = 0;
    const double value = strtod(text, &end);
    for (size_t i = 0; end != text && errno == 0 && i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(end, units[i].unit) == 0 && value * units[i].ns < 9e18) {
            *ns = llround(value * units[i].ns);
            return true;
        }
    }
    return false;
}

/* "14:03:02.5", "2026-11-22 14:03:02": of the day on which the trace began, where none is said; local time.
 */
static bool parse_clock(const char *text, const struct ct_extent *extent, int64_t *at_ns)
{
    static const char *const forms[] = { "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M",
                                         "%H:%M:%S", "%H:%M" };
    const time_t began = (time_t)((extent->begin_ns + extent->realtime_offset_ns) / 1000000000);
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct tm time;
        if (!localtime_r(&began, &time))
            return false;
        time.tm_sec = 0;
        time.tm_isdst = -1;
        const char *rest = strptime(text, forms[i], &time);
        int64_t fraction_ns = 0;
        if (!rest || (*rest == '.' ? !parse_span(rest, &fraction_ns) : *rest != '\0'))
            continue;
        int64_t ns = (int64_t)mktime(&time) * 1000000000 + fraction_ns - extent->realtime_offset_ns;
        const int64_t day_ns = INT64_C(86400) * 1000000000;
        if (forms[i][1] == 'H' && ns < extent->begin_ns && ns + day_ns <= extent->end_ns)
            ns += day_ns; /* behind midnight */
        *at_ns = ns;
        return true;
    }
    return false;
}

bool ct_moment_parse(const char *text, const struct ct_extent *extent, int64_t *at_ns)
{
    int64_t span_ns;
    char *end;
    if (*text == '@') {
        *at_ns = strtoll(text + 1, &end, 10);
        return end != text + 1 && *end == '\0';
    }
    if (*text == '-' && parse_span(text + 1, &span_ns)) {
        *at_ns = extent->end_ns - span_ns;
        return true;
    }
    if (parse_span(*text == '+' ? text + 1 : text, &span_ns)) {
        *at_ns = extent->begin_ns + span_ns;
        return true;
    }
    return parse_clock(text, extent, at_ns);
}
