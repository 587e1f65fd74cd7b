#include "bounded_sum.h"

#include <stddef.h>
#include <stdint.h>

struct sum {
    __int128 integers;
    double reals;
    int64_t count, real_count; /* values that are not NULL, and those among them that are not integers */
};

/* `sign` is -1 if the value leaves a window. */
static void change(sqlite3_context *context, sqlite3_value *value, int sign)
{
    struct sum *sum = sqlite3_aggregate_context(context, sizeof(*sum));
    const int type = sqlite3_value_numeric_type(value);
    if (!sum || type == SQLITE_NULL)
        return;
    sum->count += sign;
    if (type == SQLITE_INTEGER) {
        sum->integers += sign * (__int128)sqlite3_value_int64(value);
    } else {
        sum->real_count += sign;
        sum->reals += sign * sqlite3_value_double(value);
    }
}

static void step(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    change(context, values[0], 1);
}

static void inverse(sqlite3_context *context, int count, sqlite3_value **values)
{
    (void)count;
    change(context, values[0], -1);
}

static void value(sqlite3_context *context)
{
    const struct sum *sum = sqlite3_aggregate_context(context, 0);
    if (!sum || sum->count == 0)
        return; /* NULL */
    if (sum->real_count > 0)
        sqlite3_result_double(context, (double)sum->integers + sum->reals);
    else if (sum->integers > INT64_MAX || sum->integers < INT64_MIN)
        sqlite3_result_int64(context, sum->integers > 0 ? INT64_MAX : INT64_MIN);
    else
        sqlite3_result_int64(context, (sqlite3_int64)sum->integers);
}

int ct_bounded_sum_add(sqlite3 *connection)
{
    return sqlite3_create_window_function(connection, "sum", 1,
                                          SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL, step,
                                          value, value, inverse, NULL);
}
