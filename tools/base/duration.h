/* An option that takes a duration in the format of the daemon's --keep: 90s, 10m, 24h, 7d. */
#ifndef CT_DURATION_H
#define CT_DURATION_H

#include "number.h"
#include "options.h"

#include <stdio.h>
#include <string.h>

#define CT_DURATION_WRONG "expected a duration from 1s to 3653d, such as 30s, 10m or 24h"

/* Stores nanoseconds in a uint64_t. */
static inline bool ct_take_duration(const struct ct_option *option, const char *value)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
    enum { DIGITS_MOST = 12, DAYS_MOST = 3653 };
    uint64_t *ns = option->to;
    char digits[DIGITS_MOST + 1];
    int64_t number;
    const size_t length = strlen(value);
    if (length < 2 || length - 1 > DIGITS_MOST)
        return false;
    snprintf(digits, sizeof(digits), "%.*s", (int)(length - 1), value);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (value[length - 1] != units[i].unit ||
            !ct_number_parse(digits, 1, INT64_C(86400) * DAYS_MOST / units[i].seconds, &number))
            continue;
        *ns = (uint64_t)(number * units[i].seconds) * 1000000000;
        return true;
    }
    return false;
}

#endif
