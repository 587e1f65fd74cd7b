#include "dropped.h"

#include <stdio.h>
#include <string.h>

void ct_drop(struct ct_dropped *dropped, const char *reason, int64_t place, const char *what)
{
    size_t k = 0;
    while (k < dropped->kinds && k + 1 < CT_DROPPED_KINDS && strcmp(dropped->kind[k].reason, reason) != 0)
        k++;
    if (k == dropped->kinds) {
        dropped->kind[dropped->kinds++].reason = reason;
        dropped->kind[k].place = place;
        snprintf(dropped->kind[k].first, sizeof(dropped->kind[k].first), "%s", what);
    }
    dropped->kind[k].count++;
}

void ct_dropped_text(const struct ct_dropped *dropped, size_t kind, char *text, size_t bytes)
{
    const unsigned long long count = dropped->kind[kind].count;
    const bool are_lines = strcmp(dropped->noun, "line") == 0;
    char place[64] = "";
    if (dropped->kind[kind].place > 0)
        snprintf(place, sizeof(place), " (first: %s %lld)", are_lines ? "line" : "byte",
                 (long long)dropped->kind[kind].place);
    snprintf(text, bytes, "%llu %s%s dropped: %s%s", count, dropped->noun, count == 1 ? "" : "s",
             dropped->kind[kind].first, place);
}
