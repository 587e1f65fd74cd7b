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

static int give_back(struct ct_store *store, const int64_t *value, const char *kind, bool *found)
{
    const int error = ct_store_ask(store, value[4] > 1 ? CT_SQL_free_range : CT_SQL_free_allocation,
                                   CT_FREE_VALUES, value, 1, &kind, NULL);
    *found = !error && sqlite3_changes(store->database.connection) > 0;
    return error;
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

int ct_store_settle_late_allocation(struct ct_store *store, const int64_t *value)
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
    return ct_store_do(store, CT_SQL_supersede_late_allocation, 3, value);
}
