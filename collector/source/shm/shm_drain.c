#include "shm_drain.h"

#include "gpu_outcome.h"
#include "room.h"
#include "shm_drops.h"
#include "shm_functions.h"
#include "shm_lane.h"
#include "shm_segment.h"
#include "test_point.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* How long the watermark waits for a probe: the first value is for probes run by the daemon's own user, and
 * the second is for other users' probes. */
#ifndef CT_PROBE_PATIENCE_NS
#define CT_PROBE_PATIENCE_NS UINT64_C(1000000000)
#endif
#define PROBE_PATIENCE_OF_USERS_NS UINT64_C(200000000)

/* ---- a batch ---- */

static int sync_lanes(struct ct_shm_process *process, struct ct_ledger *ledger)
{
    const uint32_t published = atomic_load_explicit(&process->shared->lanes, memory_order_acquire);
    if (published > process->facts.lane_slots) {
        process->broken = "it has more lanes than fit into it";
        return 0;
    }
    struct ct_holding *all = &process->shm->held, *his = ct_shm_holding(process);
    process->lanes_refused = false;
    process->lanes_wait = 0;
    while (process->lane_count < published) {
        process->lanes_refused = !ct_share_has_room(all, his, CT_SHARED_LANES, 0);
        if (process->lanes_refused) {
            process->lanes_wait = published - process->lane_count; /* wait until the user's threads end */
            return 0;
        }
        if (!ct_user_may_write(process->who.user))
            return 0;
        struct ct_lane_source *lane;
        const size_t item = sizeof(struct ct_lane_source *);
        int error =
            ct_make_room(&process->lanes, process->lane_count, &process->lane_room, item) ? 0 : -ENOMEM;
        if (!error)
            error = ct_lane_source_create(process, process->lane_count, &lane);
        if (error == -EPROTO)
            process->broken = "its file is too short for its lanes";
        else if (error)
            process->lanes_wait = published - process->lane_count; /* the next batch tries again */
        if (error)
            return 0;
        error = ct_lane_source_begin(lane, ledger);
        if (error || process->broken) {
            ct_lane_source_destroy(lane);
            return error;
        }
        if (process->detached)
            ct_lane_source_detach(lane);
        lane->silent_ns = process->synced_ns;
        process->lanes[process->lane_count++] = lane;
        ct_share_take(all, his, CT_SHARED_LANES, 0);
        CT_TEST_POINT("process.lane");
    }
    return 0;
}

/* Determines how far a process's clock is ahead without using /proc, for a process that exited early or whose
 * /proc entry is not accessible. The counter is the same in all namespaces, and the segment header has the
 * values of both clocks from when the segment was created. If neither a step nor a slew can explain the
 * difference, the process's clock has a different origin. */
static void learn_ahead(struct ct_shm_process *process)
{
    const int64_t differs_ns = 1000000000;
    struct ct_segment *facts = &process->facts;
    if (process->is_ahead_known || facts->clock != CT_CLOCK_COUNTER)
        return;
    size_t hint = 0;
    const uint64_t made_ns = ct_timeline_ns(&process->shm->timeline, facts->anchor.ticks, &hint);
    const int64_t ahead_ns = (int64_t)(facts->anchor.monotonic_ns - made_ns);
    if (ahead_ns < differs_ns && ahead_ns > -differs_ns)
        return;
    process->who.exec_ns = process->who.exec_ns - (uint64_t)ahead_ns;
    facts->absent_ns -= facts->absent_ns ? (uint64_t)ahead_ns : 0;
    if (process->who.exec_ns > INT64_MAX || facts->absent_ns > INT64_MAX)
        process->who.exec_ns = facts->absent_ns = 0;
    process->is_ahead_known = true;
}

/* Registers the process with the ledger, which creates its rows. Marks the process as broken if the trace
 * refuses it. Returns 0 or -1. */
static int make_rows(struct ct_shm_process *process, struct ct_batch *batch)
{
    size_t hint = 0;
    learn_ahead(process);
    const struct ct_segment *segment = &process->facts;
    const uint64_t created_ns = segment->clock == CT_CLOCK_MONOTONIC
                                    ? segment->anchor.monotonic_ns
                                    : ct_timeline_ns(&process->shm->timeline, segment->anchor.ticks, &hint);
    const uint64_t started_ns = ct_shm_at_most(created_ns, batch->now_ns);
    const struct ct_process_facts facts = {
        .is.start_ticks = process->who.start_ticks,
        .is.exec_ns = process->who.exec_ns,
        .is.started_ns = started_ns,
        .is.absent_ns = ct_shm_at_most(segment->absent_ns, started_ns),
        .is.changed_ns = process->changed_ns,
        .is.pid = process->who.pid,
        .is.uid = process->who.uid,
        .exe = segment->exe,
        .cmdline = segment->cmdline,
        .segment = strrchr(process->path, '/') + 1,
    };
    if (ct_ledger_register(batch->ledger, &process->account, &facts) != 0)
        return -1;
    CT_TEST_POINT("process.registered");
    ct_shm_revert_functions(process);
    if (process->account.segment_id == 0)
        process->broken =
            "it has the name of another process's segment, or names a process that had already ended";
    return 0;
}

static uint64_t patience_ns(const struct ct_shm_process *process)
{
    return process->who.user ? PROBE_PATIENCE_OF_USERS_NS : CT_PROBE_PATIENCE_NS;
}

void ct_shm_read_complete(struct ct_shm_process *process)
{
    size_t hint = 0;
    if (ct_shm_is_probed(process))
        process->complete_read_ns =
            ct_shm_ns(process, atomic_load_explicit(&process->shared->complete, memory_order_acquire), &hint);
}

void ct_shm_use_complete(struct ct_shm_process *process, uint64_t now_ns, bool all_are_known)
{
    const uint64_t oldest_ns = now_ns - patience_ns(process) / 2; /* half of the patience is left */
    if (all_are_known)
        process->complete_ns = process->complete_read_ns;
    else if (process->complete_ns == 0)
        process->complete_ns = process->complete_read_ns < oldest_ns ? process->complete_read_ns : oldest_ns;
}

/* Checks whether the segment's writer has ended. After a process has exited, its probe keeps writing until
 * the probe marks the segment as left or loses its lock. Checking the lock takes a system call. The lock is
 * therefore checked only once a second, and in each batch after the process has exited. */
static void note_end(struct ct_shm_process *process, const struct ct_batch *batch)
{
    const bool is_left = ct_shm_is_left(process);
    const bool is_dead = atomic_load_explicit(&process->who.dead, memory_order_acquire);
    if (ct_shm_is_probed(process)) {
        process->final = is_left || ((is_dead || batch->snapshot_open) && ct_shm_is_over(process));
        return;
    }
    process->final = is_dead || is_left || (batch->snapshot_open && ct_shm_is_over(process));
    if (process->final)
        atomic_store(&process->who.dead, true);
}

int ct_shm_sync(struct ct_shm_process *process, struct ct_batch *batch)
{
    note_end(process, batch);
    process->unfinished = false;
    if (process->account.generation == 0 && !ct_user_may_start(process->who.user)) {
        process->unfinished = true;
        return 0;
    }
    if (!ct_account_is_registered(batch->ledger, &process->account)) {
        if (make_rows(process, batch) != 0)
            return -1;
        if (process->broken)
            return 0;
    }
    /* A lane that was created after the last batch has published no call that returned before that batch. In
     * the first batch of a user's process, do not wait for anything that the user could have forged. */
    if (process->who.user && process->synced_ns == 0)
        process->synced_ns = process->shm->silent_ns;
    const int error = sync_lanes(process, batch->ledger);
    process->synced_ns = process->shm->silent_ns;
    return error;
}

/* Ends the batch before calls that a probe has not published yet. A probe that lags too far behind is not
 * waited for, so its rows will be late. */
static void wait_for_probe(const struct ct_shm_process *process, struct ct_batch *batch)
{
    const struct ct_user *user = process->who.user;
    if (!ct_shm_is_probed(process) || process->final || process->complete_ns >= batch->until_ns ||
        batch->now_ns - process->complete_ns >= patience_ns(process) ||
        (user && batch->now_ns < user->not_waited_until_ns))
        return;
    batch->until_ns = process->complete_ns;
}

void ct_shm_watermark(struct ct_shm_process *process, struct ct_batch *batch)
{
    wait_for_probe(process, batch);
    for (uint32_t i = 0; i < process->lane_count; i++)
        ct_lane_source_watermark(process->lanes[i], batch);
}

uint64_t ct_shm_slots(const struct ct_shm_process *process)
{
    uint64_t slots = 0;
    for (uint32_t i = 0; i < process->lane_count; i++)
        slots += ct_lane_source_slots(process->lanes[i]);
    return slots;
}

void ct_shm_hold_back(struct ct_shm_process *process, uint64_t share, uint64_t of)
{
    for (uint32_t i = 0; i < process->lane_count; i++) {
        struct ct_lane_source *lane = process->lanes[i];
        const uint64_t slots = ct_lane_source_slots(lane);
        lane->stop_at = lane->read + slots * share / of + (slots > 0); /* each lane advances */
    }
}

int ct_shm_add(struct ct_shm_process *process, struct ct_ledger *ledger)
{
    /* Read the directory after the positions, so that it has every function named by a published record. Read
     * it even if there is no lane, because calls are also counted by function if there was no memory for a
     * lane. */
    ct_shm_read_directory(process);
    for (uint32_t i = 0; i < process->lane_count && !process->broken; i++) {
        if (ct_merge_add(&ledger->merge, &process->lanes[i]->stream) != 0) {
            ct_store_short_of_memory(ledger->store);
            return -1;
        }
    }
    return 0;
}

static uint32_t cause_of(const struct ct_shm_process *process, enum ct_unlaned why)
{
    if (why == CT_UNLANED_CLOCK)
        return CT_LOSS_CLOCK;
    return ct_shm_is_probed(process) ? CT_LOSS_PROBE : CT_LOSS_MEMORY;
}

/* Saves the losses of threads without a lane under lane UINT32_MAX and thread 0. */
static int save_unlaned(struct ct_shm_process *process, struct ct_ledger *ledger, enum ct_unlaned why)
{
    struct ct_loss *loss = &process->shared->unlaned[why];
    const uint64_t calls = atomic_load_explicit(&loss->calls, memory_order_acquire);
    if (calls == process->unlaned_saved[why])
        return 0;
    if (calls < process->unlaned_saved[why] || calls > CT_UNSENT_CALLS_MAX) {
        process->broken = "its number of lost calls has decreased, or is impossibly high";
        return 0;
    }
    size_t hint = 0;
    const struct ct_loss_facts facts = {
        .segment_id = process->account.segment_id,
        .lane = UINT32_MAX,
        .cause = cause_of(process, why),
        .calls = calls,
        .first_ns = ct_shm_past_ns(process, atomic_load_explicit(&loss->first, memory_order_relaxed), &hint),
        .last_ns = ct_shm_past_ns(process, atomic_load_explicit(&loss->last, memory_order_relaxed), &hint),
    };
    if (ct_ledger_save(ledger, &(struct ct_fact){ CT_FACT_LOSS, .loss = facts }) != 0)
        return -1;
    process->unlaned_saved[why] = calls;
    return 0;
}

/* Saves once that calls of a probed process are missing whose number is unknown. */
static int save_copied(struct ct_shm_process *process, struct ct_batch *batch)
{
    const uint32_t flags = atomic_load_explicit(&process->shared->flags, memory_order_acquire);
    if (process->copied_saved || !(flags & CT_SEGMENT_COPIED))
        return 0;
    const struct ct_loss_facts facts = {
        .segment_id = process->account.segment_id,
        .lane = UINT32_MAX,
        .cause = CT_LOSS_CODE,
        .first_ns = batch->now_ns,
        .last_ns = batch->now_ns,
    };
    process->copied_saved = true;
    return ct_ledger_save(batch->ledger, &(struct ct_fact){ CT_FACT_LOSS, .loss = facts });
}

/* ---- open calls ---- */

/* Reads a thread's open calls. The stack of a running thread may change while it is read, so the result is
 * discarded if anything was published in between. Calls long enough to matter stay on the stack. */
static size_t read_open(struct ct_lane_source *lane, struct ct_open_call open[CT_OPEN_MAX])
{
    const struct ct_lane_state before = ct_lane_state(lane->shared);
    const uint32_t entered = ct_lane_depth(lane->shared);
    uint32_t depth = entered < CT_OPEN_MAX ? entered : CT_OPEN_MAX;
    ct_lane_open(lane->shared, depth, open);
    CT_TEST_POINT("process.open_read");
    if (ct_lane_state(lane->shared).position != before.position || ct_lane_depth(lane->shared) != entered)
        return 0;
    /* If the thread was killed, the call that it published last may still be on the stack. */
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

/* Writes the open calls of one lane to the database. */
static int store_open_calls(struct ct_shm_process *process, struct ct_ledger *ledger,
                            struct ct_lane_source *lane, const struct ct_open_call *open, size_t depth)
{
    for (size_t d = 0; d < depth; d++) {
        if (open[d].start == 0)
            continue; /* left by a range that was popped before the ranges that it encloses */
        /* By now, the directory also contains functions that were first called after it was last read. */
        if (open[d].function >= process->published)
            ct_shm_read_directory(process);
        const uint32_t entry = open[d].function < process->published ? open[d].function : 0;
        const struct ct_callee *function = ct_shm_function(process, ledger, entry);
        const uint64_t start_ns = ct_lane_source_opened(lane, (uint32_t)d, open[d].start);
        if (!function)
            return -1;
        const struct ct_open_facts facts = { process->account.segment_id, lane->caller.thread_id,
                                             function->function_id, d, start_ns };
        if (ct_ledger_save(ledger, &(struct ct_fact){ CT_FACT_OPEN, &lane->caller, .open = facts }) != 0)
            return -1;
    }
    return 0;
}

/* Returns whether the process has a later segment, either because the hook has abandoned this segment, or
 * because the probe that wrote this segment was killed and replaced. */
static bool is_replaced(const struct ct_shm_process *process)
{
    for (const struct ct_shm_process *other = process->shm->processes; other; other = other->next) {
        if (other->account.process_id == process->account.process_id && !ct_shm_is_companion(other) &&
            other->account.segment_id > process->account.segment_id)
            return true;
    }
    return false;
}

/* Saves the open calls if they differ from those in the database, and replaces all the process's open calls
 * there, because its latest segment has all of them. Returns 0 or -1. */
static int save_open_calls(struct ct_shm_process *process, struct ct_ledger *ledger)
{
    struct ct_open_call open[CT_OPEN_MAX];
    uint64_t signature = 0;
    for (uint32_t i = 0; i < process->lane_count; i++)
        signature = sign_open(signature, i, open, read_open(process->lanes[i], open));
    if ((process->open_saved && signature == process->open_signature) || is_replaced(process))
        return 0;
    process->open_saved = false;
    if (!ct_user_may_write(process->who.user)) {
        process->unfinished |= process->final;
        return 0;
    }
    const struct ct_open_facts none = { .segment_id = process->account.segment_id };
    if (ct_ledger_save(ledger, &(struct ct_fact){ CT_FACT_NOTHING_OPEN, .open = none }) != 0)
        return -1;
    /* Read the open calls again, because the threads keep running and the signature must match the stored
     * calls. */
    bool complete = true;
    signature = 0;
    for (uint32_t i = 0; i < process->lane_count; i++) {
        struct ct_lane_source *lane = process->lanes[i];
        const size_t depth = read_open(lane, open);
        if (depth > 0 && (lane->caller.thread_id == 0 || !ct_user_may_write(process->who.user))) {
            complete = false; /* the thread has no number yet, or the user's limit is reached: retry later */
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

static int save_gpu_recording(struct ct_shm_process *process, struct ct_ledger *ledger)
{
    char text[CT_GPU_TEXT_BYTES];
    const struct ct_segment *shared = process->shared;
    const uint32_t gpu = atomic_load_explicit(&shared->gpu, memory_order_acquire);
    if (gpu == process->gpu_saved || !ct_gpu_outcome(shared, gpu, text))
        return 0;
    const struct ct_recording_facts facts = { process->account.segment_id };
    process->gpu_saved = gpu;
    return ct_ledger_save(ledger,
                          &(struct ct_fact){ CT_FACT_GPU_RECORDING, .text = { text }, .recording = facts });
}

/* ---- after the merge ---- */

int ct_shm_save(struct ct_shm_process *process, struct ct_batch *batch)
{
    struct ct_ledger *ledger = batch->ledger;
    batch->is_alone |= process->final || process->broken;
    /* If the trace has refused the process, it has no segment in the trace. */
    if (process->account.segment_id == 0)
        return 0;
    if (ct_ledger_save_sums(ledger, &process->account) != 0 || ct_shm_save_drops(process, ledger) != 0)
        return -1;
    CT_TEST_POINT("process.counted");
    for (uint32_t i = 0; i < process->lane_count; i++) {
        if (ct_lane_source_save(process->lanes[i], ledger) != 0)
            return -1;
        const uint32_t fill = ct_lane_source_fill(process->lanes[i]);
        batch->report->fill = fill > batch->report->fill ? fill : batch->report->fill;
    }
    for (uint32_t why = 0; why < CT_UNLANED_COUNT; why++) {
        if (save_unlaned(process, ledger, why) != 0)
            return -1;
    }
    if (save_copied(process, batch) != 0 || save_gpu_recording(process, ledger) != 0)
        return -1;
    const bool has_open =
        !ct_shm_is_companion(process); /* otherwise, the hook's segment has the open calls */
    return has_open && (batch->snapshot_open || process->final) ? save_open_calls(process, ledger) : 0;
}

void ct_shm_publish(struct ct_shm_process *process, const struct ct_batch *batch, uint32_t selections)
{
    const struct ct_segment *shared = process->shared;
    process->call_soon = process->detached ||
                         atomic_load_explicit(&shared->selections, memory_order_acquire) != selections ||
                         atomic_load_explicit(&shared->gpu_until_ns, memory_order_acquire) !=
                             atomic_load_explicit(&shared->gpu_followed_ns, memory_order_acquire);
    if (process->account.segment_id != 0 &&
        !(atomic_load_explicit(&process->shared->flags, memory_order_relaxed) & CT_SEGMENT_KNOWN))
        atomic_fetch_or_explicit(&process->shared->flags, CT_SEGMENT_KNOWN, memory_order_release);
    for (uint32_t i = 0; i < process->lane_count; i++) {
        ct_lane_source_publish(process->lanes[i], batch);
        CT_TEST_POINT("process.lane_published");
    }
    if (atomic_load(&process->guard->poisoned) || ct_segment_map_is_poisoned(&process->map, &process->facts))
        process->broken = "its file was truncated";
}

void ct_shm_revert(struct ct_shm_process *process)
{
    ct_account_revert(&process->account);
    ct_shm_revert_functions(process);
    for (uint32_t i = 0; i < process->lane_count; i++)
        ct_lane_source_revert(process->lanes[i]);
    process->open_saved = false;
    memset(process->unlaned_saved, 0, sizeof(process->unlaned_saved));
    process->copied_saved = false;
    process->gpu_saved = 0;
}

static bool has_unread_lanes(const struct ct_shm_process *process)
{
    return atomic_load_explicit(&process->shared->lanes, memory_order_acquire) > process->lane_count;
}

bool ct_shm_has_backlog(const struct ct_shm_process *process)
{
    for (uint32_t i = 0; i < process->lane_count && !process->broken; i++) {
        if (ct_lane_state(process->lanes[i]->shared).position != process->lanes[i]->read)
            return true;
    }
    return !process->broken &&
           (process->unfinished || (has_unread_lanes(process) && !process->lanes_refused));
}

/* Counts the calls in a lane that no batch has begun to read. Counts from the tail, because the position in
 * the database is not known. */
static uint64_t waiting_unread(struct ct_shm_process *process, uint32_t index)
{
    struct ct_lane_source *lane;
    if (ct_lane_source_create(process, index, &lane) != 0)
        return 0;
    lane->committed.position = ct_lane_tail(lane->shared);
    const uint64_t calls = ct_lane_source_waiting(lane);
    ct_lane_source_destroy(lane);
    return calls;
}

uint64_t ct_shm_waiting(struct ct_shm_process *process)
{
    const uint32_t lanes = atomic_load_explicit(&process->shared->lanes, memory_order_acquire);
    uint64_t calls = 0;
    if (process->broken || lanes > process->facts.lane_slots)
        return 0;
    for (uint32_t i = 0; i < lanes; i++)
        calls +=
            i < process->lane_count ? ct_lane_source_waiting(process->lanes[i]) : waiting_unread(process, i);
    return calls;
}

int ct_shm_end(struct ct_shm_process *process, struct ct_ledger *ledger)
{
    /* A probe may end before the process that it traces, and that process may have executed another
     * program. */
    const uint32_t flags = atomic_load_explicit(&process->shared->flags, memory_order_acquire);
    const bool goes_on = ct_shm_is_probed(process)
                             ? ct_process_runs(&process->who) && !(flags & CT_SEGMENT_EXITING)
                             : ct_shm_is_left(process);
    const char *state = goes_on ? "detached" : ct_shm_has_exited(process) ? "exited" : "killed";
    CT_TEST_POINT("process.ending");
    /* Do not wait for unread lanes. Otherwise, each of the user's ended processes would hold on to a part of
     * the user's share. */
    if (!process->broken && has_unread_lanes(process))
        process->broken = "it had more threads than are read at once for one user";
    /* The process may have ended after the batch began, so use the current time, which is later than all of
     * its calls. */
    const struct ct_end_facts end = { process->account.process_id, ct_monotonic_ns() };
    return ct_ledger_save(ledger, &(struct ct_fact){ CT_FACT_END, .text = { state }, .end = end });
}

void ct_shm_detach(struct ct_shm_process *process)
{
    if (process->detached)
        return;
    process->detached = true;
    atomic_fetch_or_explicit(&process->shared->flags, CT_SEGMENT_DETACHED, memory_order_release);
    CT_TEST_POINT("process.detaching");
    for (uint32_t i = 0; i < process->lane_count; i++)
        ct_lane_source_detach(process->lanes[i]);
    CT_TEST_POINT("process.detached");
}
