#include "ledger.h"

#include "deferred.h"
#include "duration_bucket.h"
#include "interner.h"
#include "numbers.h"
#include "payload.h"
#include "recorder.h"
#include "room.h"
#include "selection.h"
#include "statements.h"
#include "stored_calls.h"
#include "stored_notes.h"
#include "test_point.h"

#include <string.h>

enum {
    PLACE_EFFORT = 8,
    KEY_EFFORT = 8
}; /* the cost of saving a lane's position or a count, in rows of plain calls */

struct total_facts {
    uint64_t calls, total_ns, min_ns, max_ns, bytes, failed;
};

/* The sums over a function's rows in this batch. */
struct ct_account_total {
    struct total_facts facts;
    struct ct_callee *callee;
};

/* ---- batches ---- */

int ct_ledger_commit(struct ct_ledger *ledger)
{
    if (ct_store_commit(ledger->store) != 0)
        return -1;
    ct_recorder_commit(ledger->recorder, ledger->merge.until_ns);
    return 0;
}

void ct_ledger_rollback(struct ct_ledger *ledger)
{
    ct_store_rollback(ledger->store);
    ct_recorder_forget(ledger->recorder);
}

void ct_ledger_finish(struct ct_ledger *ledger)
{
    ct_recorder_commit(ledger->recorder, ledger->merge.until_ns);
    ct_recorder_destroy(ledger->recorder);
    ledger->recorder = NULL;
    ct_merge_finish(&ledger->merge);
}

void ct_account_revert(struct ct_account *account)
{
    for (uint32_t i = 0; i < account->total_count; i++)
        account->totals[i].callee->total = 0;
    account->total_count = 0;
    ct_histogram_clear(&account->histogram);
}

void ct_account_finish(struct ct_account *account)
{
    ct_histogram_finish(&account->histogram);
    free(account->totals);
    account->totals = NULL;
}

/* ---- calls ---- */

static void charge(const struct ct_account *account, uint64_t effort)
{
    if (account->budget)
        account->budget->spent += effort;
}

/* Returns the thread_id that another caller has for the same thread, or 0. If that caller's segment has
 * ended, only the trace still has the thread_id. */
static int64_t find_thread(struct ct_ledger *ledger, const struct ct_caller *caller)
{
    int64_t thread_id = caller->find_thread ? caller->find_thread(caller) : 0;
    if (caller->find_thread && thread_id == 0 &&
        ct_store_ask(ledger->store, CT_SQL_find_thread, CT_VALUES(caller->account->process_id, caller->tid),
                     0, NULL, &thread_id) != 0)
        ct_store_break_off(ledger->store);
    return thread_id;
}

static void make_thread(struct ct_ledger *ledger, struct ct_caller *caller, uint32_t tid, const char *name)
{
    ct_ledger_sum_up(ledger, caller);
    caller->tid = tid;
    caller->thread_id = find_thread(ledger, caller);
    if (caller->thread_id == 0)
        caller->thread_id = ct_store_thread(ledger->store, caller->account->process_id, tid, name);
    caller->numbering = 0; /* its sites have other IDs */
    caller->last_call_id = 0;
    ct_recorder_thread(ledger->recorder, caller, name);
}

static void leave_thread(struct ct_ledger *ledger, struct ct_caller *caller, uint32_t tid)
{
    ct_ledger_sum_up(ledger, caller);
    caller->tid = tid;
    caller->thread_id = 0;
}

/* Takes a note, which applies to the calls that follow it in the stream. */
static void take_note(struct ct_ledger *ledger, const struct ct_call *note)
{
    struct ct_thread_name name;
    const uint64_t before = ct_store_effort(ledger->store);
    if (note->kind != CT_KIND_THREAD) {
        ct_recorder_call(ledger->recorder, note);
        ct_store_note(ledger->store, note);
    } else if (note->payload_bytes >= sizeof(name)) {
        char clean[sizeof(name.name)];
        memcpy(&name, note->payload, sizeof(name));
        name.name[sizeof(name.name) - 1] = '\0';
        ct_text_clean(clean, name.name, strlen(name.name));
        /* Another caller's note about the same thread may follow, so create the thread's row only when its
         * first call is taken. */
        if (note->caller->find_thread)
            leave_thread(ledger, note->caller, (uint32_t)note->value);
        else
            make_thread(ledger, note->caller, (uint32_t)note->value, clean);
    }
    charge(note->caller->account, 1 + ct_store_effort(ledger->store) - before);
}

/* Returns the sums of a function in this batch. Never returns NULL: if out of memory, reports that to the
 * store and returns sums that are discarded. */
static struct total_facts *total_of(struct ct_ledger *ledger, struct ct_account *account,
                                    struct ct_callee *callee)
{
    static struct total_facts nobodys;
    if (callee->total > 0)
        return &account->totals[callee->total - 1].facts;
    if (!ct_make_room(&account->totals, account->total_count, &account->total_room,
                      sizeof(*account->totals))) {
        ct_store_short_of_memory(ledger->store);
        nobodys = (struct total_facts){ 0 };
        return &nobodys;
    }
    account->totals[account->total_count] = (struct ct_account_total){ .callee = callee };
    callee->total = ++account->total_count;
    return &account->totals[account->total_count - 1].facts;
}

/* The key consists of the function, a bit that distinguishes statuses from durations, and the status or
 * duration bucket. */
static uint64_t histogram_key(const struct ct_callee *callee, bool is_status, uint32_t value)
{
    return (uint64_t)callee->function_id << 33 | (uint64_t)is_status << 32 | value;
}

/* Counts a call in the histogram by function and duration, and also by status if it failed. */
static void count(struct ct_ledger *ledger, struct ct_account *account, const struct ct_call *call)
{
    const size_t before = account->histogram.count;
    bool counted = ct_histogram_add(&account->histogram,
                                    histogram_key(call->callee, false, ct_duration_bucket(call->duration_ns)),
                                    call->end_ns);
    if (ct_status_is_failure(call->status))
        counted &= ct_histogram_add(&account->histogram,
                                    histogram_key(call->callee, true, (uint32_t)call->status), call->end_ns);
    charge(account, KEY_EFFORT * (account->histogram.count - before));
    if (!counted)
        ct_store_short_of_memory(ledger->store);
}

/* Returns the sum, or INT64_MAX if it overflows. */
static uint64_t add(uint64_t sum, uint64_t more)
{
    return more < INT64_MAX - sum ? sum + more : INT64_MAX;
}

static void sum(struct ct_ledger *ledger, const struct ct_call *call)
{
    struct ct_caller *caller = call->caller;
    struct total_facts *total = total_of(ledger, caller->account, call->callee);
    total->min_ns =
        total->calls == 0 || call->duration_ns < total->min_ns ? call->duration_ns : total->min_ns;
    total->max_ns = call->duration_ns > total->max_ns ? call->duration_ns : total->max_ns;
    total->total_ns = add(total->total_ns, call->duration_ns);
    /* A failed call has moved no bytes. */
    if (ct_kind_has_bytes(call->kind, call->flags) && call->status == 0)
        total->bytes = add(total->bytes, call->value);
    total->failed += ct_status_is_failure(call->status);
    total->calls++;
    caller->calls++;
    if (call->callee->is_driver && call->duration_ns < INT64_MAX - caller->driver_ns)
        caller->driver_ns += call->duration_ns;
}

static void take_call(struct ct_ledger *ledger, const struct ct_call *call)
{
    struct ct_caller *caller = call->caller;
    const struct ct_budget *budget = caller->account->budget;
    const uint64_t before = budget ? ct_store_effort(ledger->store) : 0;
    if (caller->thread_id == 0)
        make_thread(ledger, caller, caller->tid, "");
    if (ledger->recorder)
        ct_recorder_call(ledger->recorder, call);
    const bool is_first = caller->calls == 0;
    caller->last_call_id = ct_store_call(ledger->store, call);
    sum(ledger, call);
    count(ledger, caller->account, call);
    if (budget)
        charge(caller->account, 1 + ct_store_effort(ledger->store) - before + (is_first ? PLACE_EFFORT : 0));
}

int ct_ledger_calls(struct ct_ledger *ledger, uint64_t rows_max, uint64_t *rows)
{
    const struct ct_call *call;
    *rows = 0;
    while (*rows < rows_max && ct_store_takes_calls(ledger->store) &&
           (call = ct_merge_first(&ledger->merge)) != NULL) {
        if (ct_kind_is_call(call->kind)) {
            take_call(ledger, call);
            ++*rows;
        } else {
            take_note(ledger, call);
        }
        ct_merge_take(&ledger->merge);
        CT_TEST_POINT("merged.taken");
    }
    return ct_store_is_broken_off(ledger->store) ? -1 : 0;
}

/* ---- processes, functions and threads ---- */

int ct_ledger_register(struct ct_ledger *ledger, struct ct_account *account,
                       const struct ct_process_facts *facts)
{
    if (ct_store_process(ledger->store, facts, &account->process_id, &account->segment_id) != 0)
        return -1;
    account->generation = ct_store_generation(ledger->store);
    if (account->segment_id != 0)
        ct_recorder_event(ledger->recorder, CT_DUMP_PROCESS,
                          &(struct ct_dump_process){ account->process_id, account->segment_id, facts->is },
                          (const char *const[]){ facts->exe, facts->cmdline, facts->segment });
    return 0;
}

static void found(struct ct_ledger *ledger, struct ct_callee *callee, const struct ct_function_name *name,
                  int error)
{
    callee->is_driver = strcmp(name->layer, ct_layer_names[CT_LAYER_DRIVER]) == 0;
    if (error)
        ct_store_break_off(ledger->store);
    else if (callee->function_id != 0)
        ct_recorder_event(ledger->recorder, CT_DUMP_FUNCTION,
                          &(struct ct_dump_function){ callee->function_id },
                          (const char *const[]){ name->layer, name->name, name->category });
}

void ct_ledger_find_function(struct ct_ledger *ledger, struct ct_callee *callee,
                             const struct ct_function_name *name)
{
    callee->function_id = 0;
    found(ledger, callee, name,
          ct_store_ask(ledger->store, CT_SQL_find_function, 0, NULL, CT_TEXTS(name->layer, name->name),
                       &callee->function_id));
}

void ct_ledger_make_function(struct ct_ledger *ledger, struct ct_callee *callee,
                             const struct ct_function_name *name)
{
    found(ledger, callee, name,
          ct_store_ask(ledger->store, CT_SQL_insert_function, 0, NULL,
                       CT_TEXTS(name->layer, name->name, name->category), &callee->function_id));
}

void ct_ledger_sum_up(struct ct_ledger *ledger, struct ct_caller *caller)
{
    if (caller->calls > 0)
        ct_store_defer(ledger->store, CT_SQL_add_to_thread,
                       CT_VALUES(caller->thread_id, (int64_t)caller->calls, (int64_t)caller->driver_ns),
                       NULL);
    caller->calls = caller->driver_ns = 0;
}

void ct_caller_rest(struct ct_caller *caller)
{
    free(caller->known);
    caller->known = NULL;
}

/* ---- saving ---- */

struct saving {
    struct ct_ledger *ledger;
    int64_t process_id;
};

static int save_count(const struct ct_histogram_count *count, void *data)
{
    const struct saving *to = data;
    const int64_t function_id = (int64_t)(count->key >> 33);
    struct ct_store *store = to->ledger->store;
    if (count->key >> 32 & 1)
        return ct_store_do(store, CT_SQL_add_failure,
                           CT_VALUES(to->process_id, function_id, (int32_t)count->key, (int64_t)count->count,
                                     (int64_t)count->first_ns, (int64_t)count->last_ns));
    return ct_store_do(store, CT_SQL_add_duration,
                       CT_VALUES(to->process_id, function_id, (uint32_t)count->key, (int64_t)count->count));
}

int ct_ledger_save_sums(struct ct_ledger *ledger, struct ct_account *account)
{
    for (uint32_t i = 0; i < account->total_count; i++) {
        const struct total_facts *facts = &account->totals[i].facts;
        if (ct_store_do(ledger->store, CT_SQL_add_total,
                        CT_VALUES(account->process_id, account->totals[i].callee->function_id,
                                  (int64_t)facts->calls, (int64_t)facts->total_ns, (int64_t)facts->min_ns,
                                  (int64_t)facts->max_ns, (int64_t)facts->bytes, (int64_t)facts->failed)) !=
            0)
            return -1;
    }
    if (ct_histogram_each(&account->histogram, save_count, &(struct saving){ ledger, account->process_id }) !=
        0)
        return -1;
    if (account->total_count == 0) {
        free(account->totals);
        account->totals = NULL;
        account->total_room = 0;
    }
    ct_account_revert(account);
    return 0;
}

int ct_ledger_save(struct ct_ledger *ledger, const struct ct_fact *fact)
{
    ct_recorder_fact(ledger->recorder, fact);
    return ct_store_fact(ledger->store, fact);
}

/* Calls `going`, which the caller of ct_ledger_end_orphans() provides, for each running process. */
struct asking {
    struct ct_ledger *ledger;
    uint64_t now_ns, left_ns, running;
    enum ct_going (*going)(const struct ct_running *running, const void *data);
    const void *data;
};

static int ask(const struct ct_running *running, void *data)
{
    struct asking *asking = data;
    const enum ct_going going = asking->going(running, asking->data);
    asking->running += going != CT_GOING_ENDED;
    if (going == CT_GOING_ON || (going == CT_GOING_UNCOLLECTED && running->is_left))
        return 0;
    const bool has_ended = going == CT_GOING_ENDED;
    const struct ct_end_facts end = { running->process_id, has_ended ? asking->now_ns : asking->left_ns };
    return ct_ledger_save(
        asking->ledger,
        &(struct ct_fact){ CT_FACT_END, .text = { has_ended ? "exited" : CT_STATE_LEFT }, .end = end });
}

int ct_ledger_end_orphans(struct ct_ledger *ledger, uint64_t now_ns, uint64_t left_ns,
                          enum ct_going (*going)(const struct ct_running *running, const void *data),
                          const void *data, uint64_t *running)
{
    struct asking asking = { ledger, now_ns, left_ns, 0, going, data };
    const int error = ct_store_each_running(ledger->store, ask, &asking);
    if (running)
        *running = asking.running;
    return error;
}
