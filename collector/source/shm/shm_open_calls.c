#include "shm_open_calls.h"

#include "shm_functions.h"
#include "shm_lane.h"
#include "test_point.h"

/* Calls that a thread is inside of. A live thread's stack changes while it is read, so it is taken only when
 * nothing was published meanwhile: calls that are worth showing stand still. */
static size_t read_open(struct ct_lane_source *lane, struct ct_open_call open[CT_OPEN_MAX])
{
    const struct ct_lane_state before = ct_lane_state(lane->shared);
    const uint32_t entered = ct_lane_depth(lane->shared);
    uint32_t depth = entered < CT_OPEN_MAX ? entered : CT_OPEN_MAX;
    ct_lane_open(lane->shared, depth, open);
    CT_TEST_POINT("process.open_read");
    if (ct_lane_state(lane->shared).position != before.position || ct_lane_depth(lane->shared) != entered)
        return 0;
    /* The call whose record was published last may not have left the stack before its thread was killed. */
    while (depth > 0 && open[depth - 1].start == lane->last_start)
        depth--;
    return depth;
}

static uint64_t sign_open(uint64_t signature, uint32_t lane, const struct ct_open_call *open, size_t depth)
{
    for (size_t d = 0; d < depth; d++)
        signature = (signature ^ open[d].start ^ (uint64_t)lane << 48 ^ d) * UINT64_C(0x9e3779b97f4a7c15);
    return signature;
}

/* The open calls of one lane into the database. */
static int store_open_calls(struct ct_shm_process *process, struct ct_ledger *ledger,
                            struct ct_lane_source *lane, const struct ct_open_call *open, size_t depth)
{
    for (size_t d = 0; d < depth; d++) {
        if (open[d].start == 0)
            continue; /* the place of a range that was popped before what it encloses */
        /* Called first since the directory was read? It is in it by now. */
        if (open[d].function >= process->published)
            ct_shm_read_directory(process);
        const uint32_t entry = open[d].function < process->published ? open[d].function : 0;
        const struct ct_callee *function = ct_shm_function(process, ledger, entry);
        const uint64_t start_ns = ct_lane_source_opened(lane, (uint32_t)d, open[d].start);
        if (!function || ct_ledger_open_call(ledger, &lane->caller, (uint32_t)d, function, start_ns) != 0)
            return -1;
    }
    return 0;
}

int ct_shm_save_open_calls(struct ct_shm_process *process, struct ct_ledger *ledger)
{
    struct ct_open_call open[CT_OPEN_MAX];
    uint64_t signature = 0;
    for (uint32_t i = 0; i < process->lane_count; i++)
        signature = sign_open(signature, i, open, read_open(process->lanes[i], open));
    if (process->open_saved && signature == process->open_signature)
        return 0;
    process->open_saved = false;
    if (!ct_user_may_write(process->who.user)) {
        process->unfinished |= process->final;
        return 0;
    }
    if (ct_ledger_clear_open_calls(ledger, &process->account) != 0)
        return -1;
    /* Read again, since they run: what counts is what was written. */
    bool complete = true;
    signature = 0;
    for (uint32_t i = 0; i < process->lane_count; i++) {
        struct ct_lane_source *lane = process->lanes[i];
        const size_t depth = read_open(lane, open);
        if (depth > 0 && (lane->caller.thread_id == 0 || !ct_user_may_write(process->who.user))) {
            complete = false; /* its first record is still to come, or there are too many: again next time */
            continue;
        }
        if (store_open_calls(process, ledger, lane, open, depth) != 0)
            return -1;
        signature = sign_open(signature, i, open, depth);
    }
    process->open_signature = signature;
    process->open_saved = complete;
    return 0;
}
