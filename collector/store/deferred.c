#include "deferred.h"

#include "allocations.h"
#include "demangle.h"
#include "room.h"
#include "statements.h"
#include "store_state.h"
#include "test_point.h"

#include <stdlib.h>
#include <string.h>

/* A batch ends when its deferred statements reach this size. The size is enough for the details of a hundred
 * thousand rows, or for the strings of a few thousand rows. */
enum { DEFERRED_MAX_BYTES = 16 * 1024 * 1024 };
/* The costs of deferred statements and their strings, measured in rows of plain calls. A row takes about 0.3
 * us here. Strings are charged too, so that no user can fill a batch with strings. */
enum { DEFERRED_EFFORT = 8, KERNEL_EFFORT = 32, RANGE_EFFORT = 64, TEXT_BYTES_EACH = 32 };

struct deferred {
    uint16_t statement;
    uint16_t values;
    uint32_t text_bytes; /* including the NUL, padded to 8; 0: no text */
};

static uint64_t effort_of(enum ct_statement statement, const int64_t *value)
{
    switch (statement) {
    case CT_SQL_insert_kernel:
        return KERNEL_EFFORT;
    case CT_SQL_free_allocation:
        return value[4] > 1 ? RANGE_EFFORT : DEFERRED_EFFORT;
    default:
        return DEFERRED_EFFORT;
    }
}

void ct_store_defer(struct ct_store *store, enum ct_statement statement, size_t values, const int64_t *value,
                    const char *text)
{
    const size_t text_bytes = text ? (strlen(text) + 8) & ~(size_t)7 : 0;
    store->effort += effort_of(statement, value) + text_bytes / TEXT_BYTES_EACH;
    const size_t wanted = sizeof(struct deferred) + values * sizeof(*value) + text_bytes;
    struct ct_deferred *taken = &store->deferred;
    if (!ct_make_room_for(&taken->bytes, taken->used, wanted, &taken->room, 1)) {
        store->out_of_memory = true;
        return;
    }
    uint8_t *place = taken->bytes + taken->used;
    const struct deferred head = { (uint16_t)statement, (uint16_t)values, (uint32_t)text_bytes };
    memcpy(place, &head, sizeof(head));
    memcpy(place + sizeof(head), value, values * sizeof(*value));
    if (text) {
        memset(place + wanted - text_bytes, 0, text_bytes);
        memcpy(place + wanted - text_bytes, text, strlen(text));
    }
    taken->used += wanted;
}

static int define_kernel(struct ct_store *store, int64_t process_id, int64_t number, const char *mangled)
{
    int64_t name_id = 0;
    const int error = ct_store_ask(store, CT_SQL_insert_name, 0, NULL,
                                   CT_TEXTS(mangled, ct_demangle(mangled, store->demangled)), &name_id);
    return error ? error : ct_store_do(store, CT_SQL_insert_kernel, CT_VALUES(process_id, number, name_id));
}

static int run_deferred(struct ct_store *store)
{
    struct ct_deferred *committing = &store->deferred_committing;
    size_t at = 0;
    while (at < committing->used) {
        struct deferred head;
        memcpy(&head, committing->bytes + at, sizeof(head));
        const int64_t *value = (const int64_t *)(const void *)(committing->bytes + at + sizeof(head));
        const char *text = (const char *)(value + head.values);
        int error;
        if (head.statement == CT_SQL_insert_kernel) {
            error = define_kernel(store, value[0], value[1], text);
        } else if (head.statement == CT_SQL_free_allocation) {
            error = ct_store_free_allocation(store, value, text);
        } else if (head.statement == CT_SQL_supersede_allocation) {
            error = ct_store_supersede_allocation(store, value, text);
        } else if (head.statement == CT_SQL_supersede_late_allocation) {
            error = ct_store_settle_late_allocation(store, value, text);
        } else {
            error = ct_store_ask(store, head.statement, head.values, value, head.text_bytes > 0, &text, NULL);
        }
        if (error)
            return error;
        at += sizeof(head) + head.values * sizeof(*value) + head.text_bytes;
    }
    committing->used = 0;
    return 0;
}

bool ct_store_is_full(const struct ct_store *store)
{
    return store->deferred.used > DEFERRED_MAX_BYTES;
}

int ct_deferred_run(struct ct_store *store)
{
    const int error = run_deferred(store);
    CT_TEST_POINT("store.deferred");
    return error;
}

void ct_deferred_hand_over(struct ct_store *store)
{
    const struct ct_deferred taken = store->deferred;
    store->deferred = store->deferred_committing;
    store->deferred_committing = taken;
    store->deferred.used = 0;
}

void ct_deferred_clear(struct ct_store *store)
{
    store->deferred.used = store->deferred_committing.used = 0;
}

void ct_deferred_finish(struct ct_store *store)
{
    free(store->deferred.bytes);
    free(store->deferred_committing.bytes);
}
