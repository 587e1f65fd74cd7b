#include "process_rows.h"

#include "account.h"
#include "names.h"
#include "statements.h"
#include "store_state.h"

#include <string.h>

static const char *const loss_causes[CT_LOSS_COUNT] = {
#define LOSS(constant, name, explanation) [CT_LOSS_##constant] = #name,
#include "loss_cause.def"
#undef LOSS
};

int ct_store_process(struct ct_store *store, const struct ct_process_facts *facts, int64_t *process_id,
                     int64_t *segment_id)
{
    const int64_t identity[] = { facts->is.pid, (int64_t)facts->is.start_ticks, (int64_t)facts->is.exec_ns,
                                 facts->is.uid };
    int64_t doubt = 0;
    *process_id = *segment_id = 0;
    if (ct_store_ask(store, CT_SQL_doubt_segment,
                     CT_VALUES(identity[0], identity[1], identity[2], identity[3], facts->is.changed_ns),
                     CT_TEXTS(facts->segment), &doubt) != 0)
        return -1;
    if (doubt)
        return 0;
    const int64_t started_ns = (int64_t)facts->is.started_ns;
    const int64_t absent_ns = facts->is.absent_ns ? (int64_t)facts->is.absent_ns : CT_NULL;
    if (ct_store_ask(store, CT_SQL_find_process, 4, identity, 0, NULL, process_id) != 0 ||
        (*process_id == 0 &&
         ct_store_do(store, CT_SQL_begin_run, CT_VALUES(atomic_load(&store->run_unix_ns))) != 0) ||
        (*process_id == 0 &&
         ct_store_ask(store, CT_SQL_insert_process,
                      CT_VALUES(identity[0], identity[1], identity[2], identity[3], started_ns),
                      CT_TEXTS(facts->exe, facts->cmdline), process_id) != 0) ||
        ct_store_do(store, CT_SQL_forgive_earlier_execs, 4, identity) != 0)
        return -1;
    return ct_store_ask(store, CT_SQL_insert_segment, CT_VALUES(*process_id, started_ns, absent_ns),
                        CT_TEXTS(facts->segment), segment_id);
}

int ct_store_each_running(struct ct_store *store, int (*each)(const struct ct_running *running, void *data),
                          void *data)
{
    sqlite3_stmt *statement = store->statement[CT_SQL_running];
    int error = ct_store_need_transaction(store), rc = SQLITE_DONE;
    while (!error && (rc = ct_store_step(statement)) == SQLITE_ROW) {
        const struct ct_running running = {
            .process_id = sqlite3_column_int64(statement, 0),
            .pid = sqlite3_column_int(statement, 1),
            .start_ticks = (uint64_t)sqlite3_column_int64(statement, 2),
            .segment = (const char *)sqlite3_column_text(statement, 3),
            .is_left = sqlite3_column_int(statement, 4) != 0,
        };
        error = each(&running, data);
    }
    if (!error && rc != SQLITE_DONE)
        error = ct_store_failed(store);
    sqlite3_reset(statement);
    return error;
}

static int leave_process(struct ct_store *store, int64_t process_id, uint64_t since_ns)
{
    const int64_t values[] = { process_id, (int64_t)since_ns };
    return ct_store_do(store, CT_SQL_leave_segment, 2, values) != 0
               ? -1
               : ct_store_do(store, CT_SQL_leave_process, 1, values);
}

int ct_store_find_lane(struct ct_store *store, int64_t segment_id, uint32_t lane, uint64_t *position,
                       struct ct_caller *caller)
{
    if (ct_store_need_transaction(store) != 0)
        return -1;
    sqlite3_stmt *statement = ct_store_bind(store, CT_SQL_find_lane, CT_VALUES(segment_id, lane));
    const int rc = ct_store_step(statement);
    if (rc == SQLITE_ROW) {
        *position = (uint64_t)sqlite3_column_int64(statement, 0);
        caller->thread_id = sqlite3_column_int64(statement, 1);
        caller->tid = (uint32_t)sqlite3_column_int64(statement, 2);
        caller->last_call_id = sqlite3_column_int64(statement, 3);
    }
    sqlite3_reset(statement);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : ct_store_failed(store);
}

int ct_store_find_losses(struct ct_store *store, int64_t segment_id, uint32_t lane, uint32_t tenancy,
                         uint64_t *lost)
{
    if (ct_store_need_transaction(store) != 0)
        return -1;
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

static int save_loss(struct ct_store *store, const struct ct_loss_facts *facts)
{
    return ct_store_ask(store, CT_SQL_save_loss,
                        CT_VALUES(facts->segment_id, facts->lane, facts->tenancy, facts->tid,
                                  (int64_t)facts->calls, (int64_t)facts->first_ns, (int64_t)facts->last_ns),
                        CT_TEXTS(loss_causes[facts->cause]), NULL);
}

static int save_unsent(struct ct_store *store, const struct ct_unsent_facts *facts)
{
    return ct_store_do(store, CT_SQL_save_unsent,
                       CT_VALUES(facts->segment_id, (int64_t)facts->entry, facts->function_id,
                                 (int64_t)facts->lost, (int64_t)facts->lost_ns, (int64_t)facts->lost_bytes,
                                 (int64_t)facts->skipped, (int64_t)facts->skipped_ns,
                                 (int64_t)facts->skipped_bytes));
}

static int end_process(struct ct_store *store, const struct ct_end_facts *facts, const char *state)
{
    if (strcmp(state, CT_STATE_LEFT) == 0)
        return leave_process(store, facts->process_id, facts->ended_ns);
    return ct_store_ask(store, CT_SQL_end_process, CT_VALUES(facts->process_id, (int64_t)facts->ended_ns),
                        CT_TEXTS(state), NULL);
}

int ct_store_set_meta(struct ct_store *store, const char *key, int64_t value)
{
    return ct_store_ask(store, CT_SQL_set_meta, CT_VALUES(value), CT_TEXTS(key), NULL);
}

int ct_store_fact(struct ct_store *store, const struct ct_fact *fact)
{
    const struct ct_lane_facts *lane = &fact->lane;
    const struct ct_open_facts *open = &fact->open;
    switch (fact->type) {
    case CT_FACT_LANE:
        return ct_store_do(store, CT_SQL_save_lane,
                           CT_VALUES(lane->segment_id, (int64_t)lane->lane, (int64_t)lane->position,
                                     lane->thread_id ? lane->thread_id : CT_NULL,
                                     fact->caller->last_call_id ? fact->caller->last_call_id : CT_NULL));
    case CT_FACT_LOSS:
        return save_loss(store, &fact->loss);
    case CT_FACT_UNSENT:
        return save_unsent(store, &fact->unsent);
    case CT_FACT_NOTHING_OPEN:
        return ct_store_do(store, CT_SQL_clear_open_calls, CT_VALUES(open->segment_id));
    case CT_FACT_OPEN:
        return ct_store_do(store, CT_SQL_insert_open_call,
                           CT_VALUES(open->segment_id, open->thread_id, (int64_t)open->depth,
                                     open->function_id, (int64_t)open->start_ns));
    case CT_FACT_GPU_RECORDING:
        return ct_store_ask(store, CT_SQL_save_gpu_recording, CT_VALUES(fact->recording.segment_id),
                            CT_TEXTS(fact->text[0]), NULL);
    case CT_FACT_END:
        return end_process(store, &fact->end, fact->text[0]);
    case CT_FACT_META:
        return ct_store_set_meta(store, fact->text[0], fact->meta.value);
    case CT_FACT_GPU:
        return ct_store_ask(store, CT_SQL_save_gpu, sizeof(fact->gpu) / sizeof(int64_t), &fact->gpu.place, 5,
                            fact->text, NULL);
    case CT_FACT_GPU_SAMPLE:
        return ct_store_ask(store, CT_SQL_insert_gpu_sample, 1 + CT_GPU_VALUES, &fact->gpu_sample.time_ns, 1,
                            fact->text, NULL);
    case CT_FACT_GPU_PROCESS:
        return ct_store_ask(store, CT_SQL_insert_gpu_process, sizeof(fact->gpu_process) / sizeof(int64_t),
                            &fact->gpu_process.time_ns, 1, fact->text, NULL);
    case CT_FACT_UNRECORDED:
        return ct_store_ask(store, CT_SQL_save_unrecorded, sizeof(fact->unrecorded) / sizeof(int64_t),
                            &fact->unrecorded.pid, 3, fact->text, NULL);
    }
    return 0;
}
