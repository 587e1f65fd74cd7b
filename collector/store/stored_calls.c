#include "stored_calls.h"

#include "bulk.h"
#include "deferred.h"
#include "detail.h"
#include "numbers.h"
#include "statements.h"
#include "store_state.h"

/* Calls that take longer than this have a row in the long_call table. Queries by start time rely on these
 * rows (docs/sql.md). */
#define LONG_CALL_NS 100000000

/* A batch ends after this many attempts to find IDs for late rows. Each attempt costs as much as a row. */
enum { LATE_TRIES_MAX = 50000 };
/* The costs of a late row and of each attempt, measured in rows of plain calls. They are high enough that no
 * single user can end a batch. */
enum { LATE_EFFORT = 16, TRY_EFFORT = 8 };

uint64_t ct_store_newest_call(const struct ct_store *store)
{
    const uint64_t newest = store->calls.last_id;
    return newest > store->earlier.until_ns ? newest : store->earlier.until_ns;
}

/* Returns a free call_id for a late row, that is, an ID neither stored nor used in this batch. Prefers IDs up
 * to `wanted`, because further rows may need the higher IDs. Never uses an ID above the ID of the last call
 * that was stored in order, because the next such call would then be refused. The search becomes wider as
 * more IDs are taken, because a process may claim the same return time for all its calls. */
static uint64_t free_call_id(struct ct_store *store, uint64_t wanted)
{
    enum { NEIGHBOURS = 16 };
    const uint64_t from = wanted;
    for (uint64_t tries = 1, window = NEIGHBOURS;; tries++) {
        store->calls.late_tries++;
        store->effort += TRY_EFFORT;
        if (ct_store_need_transaction(store) != 0) {
            store->broken_off = true;
            return wanted;
        }
        sqlite3_stmt *statement = ct_store_bind(store, CT_SQL_find_call, CT_VALUES((int64_t)wanted));
        bool stored = sqlite3_step(statement) == SQLITE_ROW;
        sqlite3_reset(statement);
        stored |= ct_bulk_has(store, CT_BULK_CALL, (int64_t)wanted);
        stored |= ct_earlier_files_has(&store->earlier, &store->database, wanted);
        bool is_new = false;
        if (!stored && ct_intern_get(&store->calls.late, &wanted, &is_new) == 0)
            store->out_of_memory = true;
        if (is_new || store->out_of_memory)
            return wanted;
        uint64_t back = tries;
        if (tries >= NEIGHBOURS) {
            if (window < store->calls.ordered_ns / 2)
                window += window / 2;
            back = (store->calls.late_tries * UINT64_C(0x9e3779b97f4a7c15) >> 16) % window;
        }
        wanted = back < from ? from - back : 1 + back - from;
    }
}

static uint64_t next_call_id(struct ct_store *store, uint64_t end_ns)
{
    struct ct_stored_calls *calls = &store->calls;
    if (end_ns < calls->ordered_ns) {
        store->effort += LATE_EFFORT;
        return free_call_id(store, end_ns > 0 ? end_ns : 1);
    }
    calls->ordered_ns = end_ns;
    return calls->last_id = end_ns > calls->last_id ? end_ns : calls->last_id + 1;
}

bool ct_store_takes_calls(const struct ct_store *store)
{
    return !store->out_of_memory && !store->broken_off && store->calls.late_tries < LATE_TRIES_MAX &&
           !ct_store_is_full(store);
}

int64_t ct_store_call(struct ct_store *store, const struct ct_call *call)
{
    const int64_t call_id = (int64_t)next_call_id(store, call->end_ns);
    const int64_t site_id = ct_store_site(store, call);
    if (call->kind != CT_KIND_CALL)
        ct_detail_store(store, call, call_id);
    /* If a call was moved to an earlier time, it may appear to begin before time 0. */
    const int64_t duration_ns = call->duration_ns < (uint64_t)call_id ? (int64_t)call->duration_ns : call_id;
    const int64_t bytes = call->value < INT64_MAX ? (int64_t)call->value : INT64_MAX;
    int64_t *value = ct_bulk_add(store, CT_BULK_CALL, call_id);
    value[1] = duration_ns;
    value[2] = site_id;
    value[3] = ct_kind_has_bytes(call->kind, call->flags) ? bytes : CT_NULL;
    if (duration_ns > LONG_CALL_NS)
        ct_bulk_add(store, CT_BULK_LONG_CALL, call_id)[1] = call_id - duration_ns;
    if (call->end_ns < store->calls.ordered_ns)
        ct_store_defer(store, CT_SQL_mark_late_call,
                       CT_VALUES(call_id, (int64_t)(store->calls.ordered_ns - call->end_ns)), NULL);
    return call_id;
}

uint64_t ct_store_effort(const struct ct_store *store)
{
    return store->effort;
}
uint64_t ct_store_late_rows(const struct ct_store *store)
{
    return store->calls.late_rows;
}

void ct_stored_calls_init(struct ct_store *store)
{
    ct_intern_init(&store->calls.late, sizeof(uint64_t), SIZE_MAX, 1);
}

void ct_stored_calls_committed(struct ct_store *store)
{
    if (store->calls.late.count == 0)
        return;
    store->calls.late_rows += store->calls.late.count;
    ct_stored_calls_clear(store);
}

void ct_stored_calls_clear(struct ct_store *store)
{
    ct_intern_reset(&store->calls.late, 1);
    store->calls.late_tries = 0;
}

void ct_stored_calls_finish(struct ct_store *store)
{
    ct_intern_finish(&store->calls.late);
}
