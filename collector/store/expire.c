#include "expire.h"

#include "numbers.h"
#include "process_rows.h"
#include "statements.h"
#include "store.h"
#include "store_state.h"
#include "test_point.h"

#define SWEEP_INTERVAL_NS 1000000000

/* Reads a number. Sets *found if there is a row with a number that is not NULL. Returns 0 or -1. */
static int read_number(struct ct_store *store, sqlite3_stmt *statement, int64_t *number, bool *found)
{
    const int rc = ct_store_step(statement);
    *found = rc == SQLITE_ROW && sqlite3_column_type(statement, 0) != SQLITE_NULL;
    if (*found)
        *number = sqlite3_column_int64(statement, 0);
    const int error = rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : ct_store_failed(store);
    sqlite3_reset(statement);
    return error;
}

static int run_with(struct ct_store *store, enum ct_statement which, int64_t value)
{
    return ct_store_do(store, which, CT_VALUES(value));
}

/* The statements that remove references to a call by its call_id. */
static const enum ct_statement parts[] = {
    CT_SQL_expire_launches,   CT_SQL_expire_transfers,  CT_SQL_expire_call_subjects,
    CT_SQL_expire_long_calls, CT_SQL_expire_late_calls, CT_SQL_expire_ranges,
    CT_SQL_expire_hook_calls, CT_SQL_expire_graphs,     CT_SQL_expire_graph_launches,
};
static const enum ct_statement expire_numbers[CT_NUMBERS] = {
    [CT_NUMBER_SITE] = CT_SQL_expire_sites,       [CT_NUMBER_SHAPE] = CT_SQL_expire_shapes,
    [CT_NUMBER_ROUTE] = CT_SQL_expire_routes,     [CT_NUMBER_SUBJECT] = CT_SQL_expire_subjects,
    [CT_NUMBER_FIELD_SET] = CT_SQL_expire_fields, [CT_NUMBER_GPU_TASK] = CT_SQL_expire_gpu_tasks,
    [CT_NUMBER_TEXT] = CT_SQL_expire_texts,
};

/* Removes the calls that returned before `bound_ns`, and all references to them. */
static int remove_calls(struct ct_store *store, int64_t bound_ns, uint64_t *rows)
{
    if (run_with(store, CT_SQL_count_expired, bound_ns) != 0 ||
        run_with(store, CT_SQL_expire_calls, bound_ns) != 0)
        return -1;
    *rows = (uint64_t)sqlite3_changes(store->database.connection);
    CT_TEST_POINT("expire.calls");
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (run_with(store, parts[i], bound_ns) != 0)
            return -1;
    }
    CT_TEST_POINT("expire.parts");
    return ct_store_set_meta(store, "expired_before_ns", bound_ns);
}

/* Removes rows that nothing refers to any more. Every remaining call was stored after the IDs were last
 * invalidated, so no call refers to older IDs. The sums of processes that ended before `bound_ns` are
 * kept. */
static int remove_unused(struct ct_store *store, int64_t bound_ns)
{
    for (int i = 0; i < CT_NUMBERS; i++) {
        if (run_with(store, expire_numbers[i], store->numbers_from[i]) != 0)
            return -1;
    }
    CT_TEST_POINT("expire.numbers");
    if (run_with(store, CT_SQL_expire_object_names, bound_ns) != 0 ||
        run_with(store, CT_SQL_expire_kernels, bound_ns) != 0 ||
        run_with(store, CT_SQL_expire_lanes, bound_ns) != 0)
        return -1;
    if (ct_store_run(store, store->statement[CT_SQL_expire_names], NULL) != 0)
        return -1;
    return ct_store_run(store, store->statement[CT_SQL_expire_threads], NULL);
}

int ct_store_expire(struct ct_store *store, uint64_t now_ns, uint64_t before_ns, uint64_t rows_max,
                    struct ct_expired *expired)
{
    int64_t oldest_ns = 0, bound_ns = 0;
    bool any;
    *expired = (struct ct_expired){ 0 };
    if (read_number(store, store->statement[CT_SQL_oldest_call], &oldest_ns, &any) != 0)
        return -1;
    const bool due = any && (uint64_t)oldest_ns < before_ns;
    const bool sweep = now_ns - store->swept_ns >= SWEEP_INTERVAL_NS;
    if (!due && !sweep)
        return 0;
    /* If more calls are due for removal than fit in one step, find the first call to keep. */
    if (due &&
        read_number(store,
                    ct_store_bind(store, CT_SQL_nth_call, CT_VALUES((int64_t)before_ns, (int64_t)rows_max)),
                    &bound_ns, &expired->more) != 0)
        return -1;
    if (!expired->more)
        bound_ns = (int64_t)before_ns;

    if (ct_store_begin(store) != 0 || (due && remove_calls(store, bound_ns, &expired->rows) != 0))
        return -1;
    /* Sweep less often, because every sweep visits the rows of all processes, and of all memory still held.
     * GPUs are sampled even if no calls are made, so rows of GPU samples may be the only rows that are due
     * for removal.
     */
    if (sweep && (run_with(store, CT_SQL_expire_allocations, bound_ns) != 0 ||
                  run_with(store, CT_SQL_expire_gpu_samples, bound_ns) != 0 ||
                  run_with(store, CT_SQL_expire_gpu_processes, bound_ns) != 0 ||
                  run_with(store, CT_SQL_expire_gpu_runs, bound_ns) != 0 ||
                  run_with(store, CT_SQL_expire_correlations, bound_ns) != 0))
        return -1;
    /* From here on, every stored call returned at bound_ns or later. */
    if (sweep && read_number(store, store->statement[CT_SQL_oldest_call], &oldest_ns, &any) != 0)
        return -1;
    const bool renew =
        sweep && before_ns > store->numbered_ns && (!any || (uint64_t)oldest_ns > store->numbered_ns);
    if (renew && remove_unused(store, bound_ns) != 0)
        return -1;
    CT_TEST_POINT("expire.committing");
    if (ct_store_run(store, store->statement[CT_SQL_commit], NULL) != 0)
        return -1;
    CT_TEST_POINT("expire.committed");
    if (sweep)
        store->swept_ns = now_ns;
    if (renew)
        ct_store_renumber(store);
    return 0;
}
