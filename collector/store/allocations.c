#include "allocations.h"

#include "statements.h"
#include "store_state.h"

#include <stdio.h>
#include <string.h>

static void remember(struct ct_store *store, const int64_t *value, const char *kind)
{
    struct ct_unmatched_free *free = &store->unmatched[store->unmatched_count++ % CT_UNMATCHED_FREES];
    memcpy(free->value, value, sizeof(free->value));
    snprintf(free->kind, sizeof(free->kind), "%s", kind);
}

static int give_back_one(struct ct_store *store, const int64_t *value, const char *kind, bool *found)
{
    const int error = ct_store_ask(store, CT_SQL_free_allocation, CT_FREE_VALUES, value, 1, &kind, NULL);
    *found = !error && sqlite3_changes(store->database.connection) > 0;
    return error;
}

/* Frees memory at each address of a range of value[4] bytes. The search ends after a few addresses where the
 * call freed nothing. Otherwise, each call could search all addresses of a process. */
static int give_back_range(struct ct_store *store, const int64_t *value, const char *kind, bool *found)
{
    enum { HELD, SUPERSEDED, LISTS, MISSES_MAX = 16 };
    static const enum ct_statement next[LISTS] = { CT_SQL_next_held, CT_SQL_next_superseded };
    const int64_t none = INT64_MAX;
    int misses[LISTS] = { 0 };
    int64_t one[CT_FREE_VALUES], last;
    memcpy(one, value, sizeof(one));
    if (__builtin_add_overflow(value[1], value[4] - 1, &last) || last == none)
        last = none - 1;
    *found = false;
    for (int64_t from = value[1]; from <= last; from = one[1] + 1) {
        int64_t address[LISTS] = { none, none };
        for (int list = 0; list < LISTS; list++) {
            if (misses[list] < MISSES_MAX && ct_store_ask(store, next[list], CT_VALUES(value[0], from, last),
                                                          1, &kind, &address[list]) != 0)
                return -1;
        }
        const int list = address[HELD] <= address[SUPERSEDED] ? HELD : SUPERSEDED;
        if (address[list] == none)
            break;
        one[1] = address[list];
        bool found_one;
        if (give_back_one(store, one, kind, &found_one) != 0)
            return -1;
        *found |= found_one;
        misses[list] += !found_one;
    }
    return 0;
}

static int give_back(struct ct_store *store, const int64_t *value, const char *kind, bool *found)
{
    return (value[4] > 1 ? give_back_range : give_back_one)(store, value, kind, found);
}

static int count_unknown(struct ct_store *store, int64_t process_id, int64_t change)
{
    return ct_store_do(store, CT_SQL_count_unknown_free, CT_VALUES(process_id, change));
}

int ct_store_free_allocation(struct ct_store *store, const int64_t *value, const char *kind)
{
    bool found;
    const int error = give_back(store, value, kind, &found);
    if (error || found)
        return error;
    remember(store, value, kind);
    return count_unknown(store, value[0], 1);
}

int ct_store_supersede_allocation(struct ct_store *store, const int64_t *value, const char *kind)
{
    int error;
    do
        error = ct_store_ask(store, CT_SQL_supersede_allocation, 3, value, 1, &kind, NULL);
    while (!error && sqlite3_changes(store->database.connection) > 0);
    return error;
}

int ct_store_settle_late_allocation(struct ct_store *store, const int64_t *value, const char *kind)
{
    struct ct_unmatched_free *first = NULL;
    for (size_t i = 0; i < CT_UNMATCHED_FREES; i++) {
        struct ct_unmatched_free *free = &store->unmatched[i];
        if (free->value[0] == value[0] && free->value[1] == value[1] &&
            free->value[2] + CT_FREE_SLACK_NS >= value[2] && (!first || free->value[2] < first->value[2]))
            first = free;
    }
    bool found = false;
    if (first && give_back(store, first->value, first->kind, &found) != 0)
        return -1;
    if (found) {
        *first = (struct ct_unmatched_free){ 0 };
        return count_unknown(store, value[0], -1);
    }
    return ct_store_ask(store, CT_SQL_supersede_late_allocation, 3, value, 1, &kind, NULL);
}
