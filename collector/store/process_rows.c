#include "process_rows.h"

#include "loss_cause.h"
#include "statements.h"
#include "store_state.h"

#include <string.h>

static const char *const loss_causes[CT_LOSS_COUNT] = {
#define LOSS(constant, name) [CT_LOSS_##constant] = #name,
#include "loss_cause.def"
#undef LOSS
};

int ct_store_process(struct ct_store *store, const struct ct_process_facts *facts, int64_t *process_id,
                     int64_t *segment_id)
{
    const int64_t identity[] = { facts->pid, (int64_t)facts->start_ticks, (int64_t)facts->image_ns,
                                 facts->uid };
    int64_t doubt = 0;
    sqlite3_stmt *statement =
        ct_store_bind(store, CT_SQL_doubt_segment,
                      CT_VALUES(identity[0], identity[1], identity[2], identity[3], facts->changed_ns));
    ct_store_bind_text(statement, 6, facts->segment);
    *process_id = *segment_id = 0;
    if (ct_store_run(store, statement, &doubt) != 0)
        return -1;
    if (doubt)
        return 0;
    if (ct_store_run(store, ct_store_bind(store, CT_SQL_find_process, 4, identity), process_id) != 0)
        return -1;
    if (*process_id == 0) {
        statement = ct_store_bind(
            store, CT_SQL_insert_process,
            CT_VALUES(identity[0], identity[1], identity[2], identity[3], (int64_t)facts->started_ns));
        ct_store_bind_text(statement, 6, facts->exe);
        ct_store_bind_text(statement, 7, facts->cmdline);
        if (ct_store_run(store, statement, process_id) != 0)
            return -1;
    }
    if (ct_store_do(store, CT_SQL_forgive_earlier_images, 4, identity) != 0)
        return -1;
    const int64_t absent_ns = facts->absent_ns ? (int64_t)facts->absent_ns : CT_NULL;
    statement = ct_store_bind(store, CT_SQL_insert_segment,
                              CT_VALUES(*process_id, (int64_t)facts->started_ns, absent_ns));
    ct_store_bind_text(statement, 4, facts->segment);
    return ct_store_run(store, statement, segment_id);
}

int ct_store_end_process(struct ct_store *store, int64_t process_id, uint64_t ended_ns, const char *state)
{
    sqlite3_stmt *statement =
        ct_store_bind(store, CT_SQL_end_process, CT_VALUES(process_id, (int64_t)ended_ns));
    ct_store_bind_text(statement, 3, state);
    return ct_store_run(store, statement, NULL);
}

int ct_store_end_orphans(struct ct_store *store, uint64_t now_ns,
                         bool (*goes_on)(const struct ct_running *running, const void *data),
                         const void *data, uint64_t *going_on)
{
    uint64_t count = 0;
    sqlite3_stmt *statement = store->statement[CT_SQL_running];
    int error = 0, rc;
    while (!error && (rc = ct_store_step(statement)) == SQLITE_ROW) {
        const struct ct_running running = {
            .process_id = sqlite3_column_int64(statement, 0),
            .pid = sqlite3_column_int(statement, 1),
            .start_ticks = (uint64_t)sqlite3_column_int64(statement, 2),
            .segment = (const char *)sqlite3_column_text(statement, 3),
        };
        if (goes_on(&running, data))
            count++;
        else
            error = ct_store_end_process(store, running.process_id, now_ns, "exited");
    }
    if (!error && rc != SQLITE_DONE)
        error = ct_store_failed(store);
    sqlite3_reset(statement);
    if (going_on)
        *going_on = count;
    return error;
}

int ct_store_find_function(struct ct_store *store, const char *layer, const char *name, int64_t *function_id)
{
    sqlite3_stmt *statement = store->statement[CT_SQL_find_function];
    ct_store_bind_text(statement, 1, layer);
    ct_store_bind_text(statement, 2, name);
    *function_id = 0;
    return ct_store_run(store, statement, function_id);
}

int ct_store_function(struct ct_store *store, const char *layer, const char *name, const char *category,
                      int64_t *function_id)
{
    sqlite3_stmt *statement = store->statement[CT_SQL_insert_function];
    ct_store_bind_text(statement, 1, layer);
    ct_store_bind_text(statement, 2, name);
    ct_store_bind_text(statement, 3, category);
    return ct_store_run(store, statement, function_id);
}

int ct_store_find_lane(struct ct_store *store, int64_t segment_id, uint32_t lane, struct ct_lane_place *place)
{
    sqlite3_stmt *statement = ct_store_bind(store, CT_SQL_find_lane, CT_VALUES(segment_id, lane));
    const int rc = ct_store_step(statement);
    if (rc == SQLITE_ROW) {
        place->position = (uint64_t)sqlite3_column_int64(statement, 0);
        place->thread_id = sqlite3_column_int64(statement, 1);
        place->tid = (uint32_t)sqlite3_column_int64(statement, 2);
    }
    sqlite3_reset(statement);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : ct_store_failed(store);
}

int ct_store_save_lane(struct ct_store *store, int64_t segment_id, uint32_t lane,
                       const struct ct_lane_place *place)
{
    const int64_t thread_id = place->thread_id ? place->thread_id : CT_NULL;
    return ct_store_do(store, CT_SQL_save_lane,
                       CT_VALUES(segment_id, lane, (int64_t)place->position, thread_id));
}

int ct_store_find_losses(struct ct_store *store, int64_t segment_id, uint32_t lane, uint32_t tenancy,
                         uint64_t *lost)
{
    sqlite3_stmt *statement = ct_store_bind(store, CT_SQL_find_losses, CT_VALUES(segment_id, lane, tenancy));
    int rc;
    while ((rc = ct_store_step(statement)) == SQLITE_ROW) {
        const char *cause = (const char *)sqlite3_column_text(statement, 0);
        for (int i = 0; cause && i < CT_LOSS_COUNT; i++) {
            if (strcmp(cause, loss_causes[i]) == 0)
                lost[i] += (uint64_t)sqlite3_column_int64(statement, 1);
        }
    }
    sqlite3_reset(statement);
    return rc == SQLITE_DONE ? 0 : ct_store_failed(store);
}

int ct_store_save_loss(struct ct_store *store, int64_t segment_id, const struct ct_loss_facts *facts)
{
    sqlite3_stmt *statement = store->statement[CT_SQL_save_loss];
    ct_store_bind(store, CT_SQL_save_loss, CT_VALUES(segment_id, facts->lane, facts->tenancy, facts->tid));
    ct_store_bind_text(statement, 5, loss_causes[facts->cause]);
    sqlite3_bind_int64(statement, 6, (sqlite3_int64)facts->calls);
    sqlite3_bind_int64(statement, 7, (sqlite3_int64)facts->first_ns);
    sqlite3_bind_int64(statement, 8, (sqlite3_int64)facts->last_ns);
    return ct_store_run(store, statement, NULL);
}

int ct_store_save_unsent(struct ct_store *store, int64_t segment_id, uint32_t entry, int64_t function_id,
                         const struct ct_unsent_facts *facts)
{
    return ct_store_do(store, CT_SQL_save_unsent,
                       CT_VALUES(segment_id, entry, function_id, (int64_t)facts->lost,
                                 (int64_t)facts->lost_ns, (int64_t)facts->lost_bytes, (int64_t)facts->skipped,
                                 (int64_t)facts->skipped_ns, (int64_t)facts->skipped_bytes));
}

int ct_store_add_total(struct ct_store *store, int64_t process_id, int64_t function_id,
                       const struct ct_total_facts *facts)
{
    return ct_store_do(store, CT_SQL_add_total,
                       CT_VALUES(process_id, function_id, (int64_t)facts->calls, (int64_t)facts->total_ns,
                                 (int64_t)facts->min_ns, (int64_t)facts->max_ns, (int64_t)facts->bytes,
                                 (int64_t)facts->failed));
}

int ct_store_add_duration(struct ct_store *store, int64_t process_id, int64_t function_id, uint32_t bucket,
                          const struct ct_tally_count *count)
{
    return ct_store_do(store, CT_SQL_add_duration,
                       CT_VALUES(process_id, function_id, bucket, (int64_t)count->count));
}

int ct_store_add_failure(struct ct_store *store, int64_t process_id, int64_t function_id, int32_t status,
                         const struct ct_tally_count *count)
{
    return ct_store_do(store, CT_SQL_add_failure,
                       CT_VALUES(process_id, function_id, status, (int64_t)count->count,
                                 (int64_t)count->first_ns, (int64_t)count->last_ns));
}

int ct_store_clear_open_calls(struct ct_store *store, int64_t process_id)
{
    return ct_store_do(store, CT_SQL_clear_open_calls, CT_VALUES(process_id));
}

int ct_store_open_call(struct ct_store *store, int64_t process_id, int64_t thread_id, uint32_t depth,
                       int64_t function_id, uint64_t start_ns)
{
    return ct_store_do(store, CT_SQL_insert_open_call,
                       CT_VALUES(process_id, thread_id, depth, function_id, (int64_t)start_ns));
}

int ct_store_set_meta(struct ct_store *store, const char *key, int64_t value)
{
    sqlite3_stmt *statement = store->statement[CT_SQL_set_meta];
    ct_store_bind_text(statement, 1, key);
    sqlite3_bind_int64(statement, 2, value);
    return ct_store_run(store, statement, NULL);
}
