/* The merge as a table: `INSERT … SELECT` from it stores the calls. A row's call_id is decided here, before
 * the row is taken, since its details will name it. */
#include "store_private.h"
#include "test_point.h"

/* Longer calls are in the table long_call, and queries for windows of starts rely on it: docs/sql.md. */
#define LONG_CALL_NS 100000000

/* A batch that has looked for the ids of late rows so often is at its end: each look costs as much as a row.
 */
enum { LATE_TRIES_MAX = 50000 };
/* In rows of plain calls: what a late one costs, and each look. So no user reaches that end alone (batch.c).
 */
enum { LATE_EFFORT = 16, TRY_EFFORT = 8 };

/* A free call_id at or before `wanted` for a late row: neither stored nor given to another of this batch. Not
 * after it, where rows that are still to come may want it, unless there are no more before it, and never
 * after the rows in order, whose next one would be refused. Goes further the more are taken, since a process
 * may say of all its calls that they returned at one time. */
static uint64_t free_call_id(struct ct_store *store, uint64_t wanted)
{
    enum { NEIGHBOURS = 16 };
    const uint64_t from = wanted;
    for (uint64_t tries = 1, window = NEIGHBOURS;; tries++) {
        store->late_tries++;
        store->effort += TRY_EFFORT;
        sqlite3_stmt *statement = ct_store_bind(store, FIND_CALL, VALUES((int64_t)wanted));
        bool stored = sqlite3_step(statement) == SQLITE_ROW;
        sqlite3_reset(statement);
        stored |= ct_earlier_has(&store->earlier, &store->database, wanted);
        bool is_new = false;
        if (!stored && ct_intern_get(&store->late, &wanted, &is_new) == 0)
            store->out_of_memory = true;
        if (is_new || store->out_of_memory)
            return wanted;
        uint64_t back = tries;
        if (tries >= NEIGHBOURS) {
            if (window < store->ordered_ns / 2)
                window += window / 2;
            back = (store->late_tries * UINT64_C(0x9e3779b97f4a7c15) >> 16) % window;
        }
        wanted = back < from ? from - back : 1 + back - from;
    }
}

static void defer_late(struct ct_store *store)
{
    const struct ct_row *row = &store->row;
    ct_store_defer(store, CT_INSERT_LATE_CALL,
                   VALUES((int64_t)store->call_id, (int64_t)row->duration_ns, row->site_id,
                          row->has_bytes ? (int64_t)row->bytes : CT_NULL),
                   NULL);
    ct_store_defer(store, CT_MARK_LATE_CALL,
                   VALUES((int64_t)store->call_id, (int64_t)(store->ordered_ns - row->end_ns)), NULL);
}

/* Decides the call_id of the row on top of the merge before it is taken, since its details will name it.
 * Returns false for a late row, which does not go through the table. */
static bool place_row(struct ct_store *store, uint64_t end_ns)
{
    if (end_ns < store->ordered_ns) {
        store->effort += LATE_EFFORT; /* defer_late() */
        store->call_id = free_call_id(store, end_ns > 0 ? end_ns : 1);
        return false;
    }
    store->ordered_ns = end_ns;
    store->call_id = end_ns > store->last_id ? end_ns : store->last_id + 1;
    store->last_id = store->call_id;
    return true;
}

static bool next_call(struct ct_row_table *table)
{
    struct ct_store *store = (struct ct_store *)table;
    while (store->rows < store->rows_max && store->merge->count > 0 && !store->out_of_memory &&
           !store->broken_off && store->late_tries < LATE_TRIES_MAX && !ct_store_is_full(store)) {
        store->effort_before = store->effort;
        const bool in_order = place_row(store, ct_merge_peek(store->merge));
        ct_merge_next(store->merge, &store->row);
        CT_TEST_POINT("merged.taken");
        store->rows++;
        /* Moved to another time than its own, it may have begun before there was any. */
        if (store->row.duration_ns > store->call_id)
            store->row.duration_ns = store->call_id;
        if (store->row.duration_ns > LONG_CALL_NS)
            ct_store_add(store, CT_BULK_LONG_CALL,
                         (const int64_t[]){ (int64_t)store->call_id,
                                            (int64_t)(store->call_id - store->row.duration_ns) });
        if (in_order) {
            table->value[0] = (int64_t)store->call_id;
            table->value[1] = (int64_t)store->row.duration_ns;
            table->value[2] = store->row.site_id;
            table->value[3] = store->row.has_bytes ? (int64_t)store->row.bytes : CT_NULL;
            return true;
        }
        defer_late(store);
    }
    return false;
}

void ct_merged_calls_init(struct ct_store *store)
{
    store->merged.next = next_call;
}
