#include "shm_process.h"

#include "shm_lane.h"
#include "selection.h"
#include "test_point.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t at_most(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

uint64_t ct_process_past_ns(const struct ct_process *process, const struct ct_batch *batch, uint64_t ticks,
                            size_t *hint)
{
    return at_most(ct_process_ns(process, batch, ticks, hint), ct_monotonic_ns());
}

/* ---- a batch ---- */

static bool make_lane_room(struct ct_process *process)
{
    if (process->lane_count < process->lane_room)
        return true;
    const uint32_t room = process->lane_room ? process->lane_room * 2 : 4;
    struct ct_lane_source **lanes = realloc(process->lanes, room * sizeof(struct ct_lane_source *));
    if (!lanes)
        return false;
    process->lanes = lanes;
    process->lane_room = room;
    return true;
}

static int sync_lanes(struct ct_process *process, struct ct_batch *batch)
{
    const uint32_t published = atomic_load_explicit(&process->shared->lanes, memory_order_acquire);
    if (published > process->facts.lane_slots) {
        process->broken = "it has more lanes than it has room for";
        return 0;
    }
    struct ct_holding *his = process->user ? &process->user->worker_has : NULL;
    process->lanes_refused = false;
    process->lanes_wait = 0;
    while (process->lane_count < published) {
        process->lanes_refused = !ct_share_has_room(batch->held, his, CT_SHARED_LANES, 0);
        if (process->lanes_refused) {
            process->lanes_wait = published - process->lane_count; /* until others of his threads have gone */
            return 0;
        }
        if (!ct_user_may_write(process->user))
            return 0;
        struct ct_lane_source *lane;
        int error = make_lane_room(process) ? 0 : -ENOMEM;
        if (!error)
            error = ct_lane_source_create(process, process->lane_count, &lane);
        if (error == -EPROTO)
            process->broken = "its file ends before its lanes";
        else if (error)
            process->lanes_wait = published - process->lane_count; /* the next batch tries again */
        if (error)
            return 0;
        /* A lane that an earlier daemon read goes on from where the database says. */
        const uint64_t tail = ct_lane_tail(lane->shared);
        if (tail > CT_POSITION_MAX) {
            process->broken = "a lane's position is out of its ring";
            ct_lane_source_destroy(lane);
            return 0;
        }
        lane->place.position = tail;
        if (ct_store_find_lane(batch->store, process->segment_id, lane->index, &lane->place) != 0) {
            ct_lane_source_destroy(lane);
            return -1;
        }
        if (lane->place.position < tail)
            lane->place.position =
                tail; /* another database has the rows before it, and their slots are gone */
        lane->committed = lane->place;
        lane->head = lane->place.position;
        if (process->detached)
            ct_lane_source_detach(lane);
        lane->silent_ns = process->synced_ns;
        process->lanes[process->lane_count++] = lane;
        ct_share_take(batch->held, his, CT_SHARED_LANES, 0);
        CT_TEST_POINT("process.lane");
    }
    return 0;
}

/* One that was gone before /proc could be asked, or whose /proc is not to be had: the counter is the same in
 * all namespaces, and its header says what both clocks showed when it made its segment. What no step or slew
 * of a clock explains is another origin. */
static void learn_ahead(struct ct_process *process, struct ct_batch *batch)
{
    const int64_t differs_ns = 1000000000;
    struct ct_segment *facts = &process->facts;
    if (process->is_ahead_known || facts->clock != CT_CLOCK_COUNTER)
        return;
    size_t hint = 0;
    const uint64_t made_ns = ct_timeline_ns(batch->timeline, facts->anchor.ticks, &hint);
    const int64_t ahead_ns = (int64_t)(facts->anchor.monotonic_ns - made_ns);
    if (ahead_ns < differs_ns && ahead_ns > -differs_ns)
        return;
    facts->image_ns = facts->image_ns - (uint64_t)ahead_ns;
    facts->absent_ns -= facts->absent_ns ? (uint64_t)ahead_ns : 0;
    if (facts->image_ns > INT64_MAX || facts->absent_ns > INT64_MAX)
        facts->image_ns = facts->absent_ns = 0;
    process->is_ahead_known = true;
}

int ct_process_sync(struct ct_process *process, struct ct_batch *batch)
{
    if (batch->snapshot_open && ct_process_is_over(process))
        atomic_store(&process->dead, true);
    process->final = atomic_load_explicit(&process->dead, memory_order_acquire);
    const bool renumber = process->generation != ct_store_generation(batch->store);
    process->unfinished = false;
    if (!process->registered && !ct_user_may_start(process->user)) {
        process->unfinished = true;
        return 0;
    }
    if (!process->registered || renumber) {
        size_t hint = 0;
        learn_ahead(process, batch);
        const uint64_t created_ns = process->facts.clock == CT_CLOCK_MONOTONIC
                                        ? process->facts.anchor.monotonic_ns
                                        : ct_timeline_ns(batch->timeline, process->facts.anchor.ticks, &hint);
        const uint64_t started_ns = at_most(created_ns, batch->now_ns);
        const struct ct_process_facts facts = {
            .pid = process->facts.pid,
            .uid = process->facts.uid,
            .start_ticks = process->facts.process_start,
            .image_ns = process->facts.image_ns,
            .started_ns = started_ns,
            .absent_ns = at_most(process->facts.absent_ns, started_ns),
            .exe = process->facts.exe,
            .cmdline = process->facts.cmdline,
            .segment = strrchr(process->path, '/') + 1,
            .changed_ns = process->changed_ns,
        };
        if (ct_store_process(batch->store, &facts, &process->process_id, &process->segment_id) != 0)
            return -1;
        CT_TEST_POINT("process.registered");
        ct_process_revert_functions(process);
        process->registered = true;
        process->generation = ct_store_generation(batch->store);
        if (process->segment_id == 0) {
            process->broken =
                "it has the name of another process's segment, or names a process that had ended";
            return 0;
        }
    }
    /* What a lane published that was not there at the last batch returned since. At a user's first batch
     * nothing is waited for that he could make up. */
    if (process->user && process->synced_ns == 0)
        process->synced_ns = batch->until_ns;
    const int error = sync_lanes(process, batch);
    process->synced_ns = batch->until_ns;
    return error;
}

void ct_process_watermark(struct ct_process *process, struct ct_batch *batch)
{
    for (uint32_t i = 0; i < process->lane_count; i++) {
        process->lanes[i]->batch = batch;
        ct_lane_source_watermark(process->lanes[i], batch);
    }
}

uint64_t ct_process_slots(const struct ct_process *process)
{
    uint64_t slots = 0;
    for (uint32_t i = 0; i < process->lane_count; i++)
        slots += process->lanes[i]->head - process->lanes[i]->place.position;
    return slots;
}

void ct_process_hold_back(struct ct_process *process, uint64_t share, uint64_t of)
{
    for (uint32_t i = 0; i < process->lane_count; i++) {
        struct ct_lane_source *lane = process->lanes[i];
        const uint64_t slots = lane->head - lane->place.position;
        lane->stop_at = lane->place.position + slots * share / of + (slots > 0); /* each lane goes on */
    }
}

int ct_process_add(struct ct_process *process, struct ct_batch *batch, struct ct_merge *merge)
{
    /* Behind the positions: the directory then holds every function that a published record names. Also
     * without a lane, since calls are counted by function where there is no memory for one. */
    ct_process_read_directory(process);
    for (uint32_t i = 0; i < process->lane_count && !process->broken; i++) {
        if (ct_merge_add(merge, &process->lanes[i]->source) != 0) {
            ct_store_short_of_memory(batch->store);
            return -1;
        }
    }
    return 0;
}

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
static int store_open_calls(struct ct_process *process, struct ct_batch *batch, struct ct_lane_source *lane,
                            const struct ct_open_call *open, size_t depth)
{
    for (size_t d = 0; d < depth; d++) {
        if (open[d].start == 0)
            continue; /* the place of a range that was popped before what it encloses */
        /* Called first since the directory was read? It is in it by now. */
        if (open[d].function >= process->published)
            ct_process_read_directory(process);
        const uint32_t entry = open[d].function < process->published ? open[d].function : 0;
        const struct ct_process_function *function = ct_process_function(process, batch, entry);
        const uint64_t start_ns = ct_lane_source_opened(lane, (uint32_t)d, open[d].start);
        if (ct_store_open_call(batch->store, process->process_id, lane->place.thread_id, (uint32_t)d,
                               function->function_id, start_ns) != 0)
            return -1;
    }
    return 0;
}

static int save_open_calls(struct ct_process *process, struct ct_batch *batch)
{
    struct ct_open_call open[CT_OPEN_MAX];
    uint64_t signature = 0;
    for (uint32_t i = 0; i < process->lane_count; i++)
        signature = sign_open(signature, i, open, read_open(process->lanes[i], open));
    if (process->open_saved && signature == process->open_signature)
        return 0;
    process->open_saved = false;
    if (!ct_user_may_write(process->user)) {
        process->unfinished |= process->final;
        return 0;
    }
    if (ct_store_clear_open_calls(batch->store, process->process_id) != 0)
        return -1;
    /* Read again, since they run: what counts is what was written. */
    bool complete = true;
    signature = 0;
    for (uint32_t i = 0; i < process->lane_count; i++) {
        struct ct_lane_source *lane = process->lanes[i];
        const size_t depth = read_open(lane, open);
        if (depth > 0 && (lane->place.thread_id == 0 || !ct_user_may_write(process->user))) {
            complete = false; /* its first record is still to come, or there are too many: again next time */
            continue;
        }
        if (store_open_calls(process, batch, lane, open, depth) != 0)
            return -1;
        signature = sign_open(signature, i, open, depth);
    }
    process->open_signature = signature;
    process->open_saved = complete;
    return 0;
}

/* Losses of threads without a lane, as those of lane UINT32_MAX and thread 0. */
static int save_unlaned(struct ct_process *process, struct ct_batch *batch)
{
    struct ct_loss *loss = &process->shared->unlaned;
    const uint64_t calls = atomic_load_explicit(&loss->calls, memory_order_acquire);
    if (calls == process->unlaned_saved)
        return 0;
    if (calls < process->unlaned_saved || calls > CT_UNSENT_CALLS_MAX) {
        process->broken = "its threads have lost fewer calls than before, or more than there can be";
        return 0;
    }
    size_t hint = 0;
    const struct ct_loss_facts facts = {
        .segment_id = process->segment_id,
        .lane = UINT32_MAX,
        .cause = CT_LOSS_MEMORY,
        .calls = calls,
        .first_ns = ct_process_past_ns(process, batch,
                                       atomic_load_explicit(&loss->first, memory_order_relaxed), &hint),
        .last_ns = ct_process_past_ns(process, batch, atomic_load_explicit(&loss->last, memory_order_relaxed),
                                      &hint),
    };
    if (ct_store_save_loss(batch->store, &facts) != 0)
        return -1;
    process->unlaned_saved = calls;
    return 0;
}

/* ---- counts of a batch ---- */

enum { KEY_EFFORT = 8 }; /* to save a count, in rows of plain calls */

/* The key: the function's entry, whether it is a status, and that or the duration's bucket. */
static uint64_t tally_key(uint32_t entry, bool is_status, uint32_t value)
{
    return (uint64_t)entry << 33 | (uint64_t)is_status << 32 | value;
}

void ct_process_count(struct ct_process *process, struct ct_batch *batch, const struct ct_record *record,
                      const struct ct_row *row)
{
    const size_t before = process->tally.count;
    bool counted = ct_tally_add(&process->tally,
                                tally_key(record->function, false, ct_duration_bucket(row->duration_ns)), row->end_ns);
    if (ct_status_is_failure(record->status))
        counted &= ct_tally_add(&process->tally, tally_key(record->function, true, (uint32_t)record->status),
                                row->end_ns);
    if (process->user)
        process->user->spent += KEY_EFFORT * (process->tally.count - before);
    if (!counted)
        ct_store_short_of_memory(batch->store);
}

struct save_counts {
    struct ct_process *process;
    struct ct_batch *batch;
};

static int save_count(const struct ct_tally_count *count, void *data)
{
    const struct save_counts *to = data;
    const int64_t function_id =
        ct_process_function(to->process, to->batch, (uint32_t)(count->key >> 33))->function_id;
    struct ct_store *store = to->batch->store;
    if (count->key >> 32 & 1)
        return ct_store_add_failure(store, to->process->process_id, function_id, (int32_t)count->key, count);
    return ct_store_add_duration(store, to->process->process_id, function_id, (uint32_t)count->key, count);
}

int ct_process_save(struct ct_process *process, struct ct_batch *batch)
{
    /* It has not so much as a segment to its name. */
    if (process->segment_id == 0)
        return 0;
    if (ct_process_save_functions(process, batch) != 0 ||
        ct_tally_each(&process->tally, save_count, &(struct save_counts){ process, batch }) != 0)
        return -1;
    ct_tally_clear(&process->tally);
    CT_TEST_POINT("process.counted");
    for (uint32_t i = 0; i < process->lane_count; i++) {
        if (ct_lane_source_save(process->lanes[i], batch) != 0)
            return -1;
    }
    if (save_unlaned(process, batch) != 0)
        return -1;
    return batch->snapshot_open || process->final ? save_open_calls(process, batch) : 0;
}

uint32_t ct_process_publish(struct ct_process *process, bool idle, uint32_t selections)
{
    uint32_t fill = 0;
    process->call_soon = process->detached || atomic_load_explicit(&process->shared->selections,
                                                                   memory_order_acquire) != selections;
    for (uint32_t i = 0; i < process->lane_count; i++) {
        const uint32_t of_lane = ct_lane_source_publish(process->lanes[i], idle);
        fill = of_lane > fill ? of_lane : fill;
        CT_TEST_POINT("process.lane_published");
    }
    if (atomic_load(&process->guard->poisoned) || ct_segment_map_is_poisoned(&process->map, &process->facts))
        process->broken = "its file was cut short";
    return fill;
}

void ct_process_forget_sites(struct ct_process *process)
{
    for (uint32_t i = 0; i < process->lane_count; i++)
        ct_lane_source_forget_sites(process->lanes[i]);
}

void ct_process_revert(struct ct_process *process)
{
    ct_process_revert_functions(process);
    ct_tally_clear(&process->tally);
    for (uint32_t i = 0; i < process->lane_count; i++)
        ct_lane_source_revert(process->lanes[i]);
    process->open_saved = false;
    process->unlaned_saved = 0;
}

static bool has_unread_lanes(const struct ct_process *process)
{
    return atomic_load_explicit(&process->shared->lanes, memory_order_acquire) > process->lane_count;
}

bool ct_process_has_backlog(const struct ct_process *process)
{
    for (uint32_t i = 0; i < process->lane_count && !process->broken; i++) {
        if (ct_lane_state(process->lanes[i]->shared).position != process->lanes[i]->place.position)
            return true;
    }
    return !process->broken &&
           (process->unfinished || (has_unread_lanes(process) && !process->lanes_refused));
}

/* Of a lane that no batch has taken on, for the database could not say where it stands. */
static uint64_t waiting_unread(struct ct_process *process, uint32_t index)
{
    struct ct_lane_source *lane;
    if (ct_lane_source_create(process, index, &lane) != 0)
        return 0;
    lane->committed.position = ct_lane_tail(lane->shared);
    const uint64_t calls = ct_lane_source_waiting(lane);
    ct_lane_source_destroy(lane);
    return calls;
}

uint64_t ct_process_waiting(struct ct_process *process)
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

int ct_process_end(struct ct_process *process, struct ct_batch *batch)
{
    const bool exited = ct_process_has_exited(process);
    CT_TEST_POINT("process.ending");
    /* Waiting for them would leave all of his that have ended with a part of his share each. */
    if (!process->broken && has_unread_lanes(process))
        process->broken = "it had more threads than are read of one user at once";
    /* Behind all that it did: it may have ended since the batch began. */
    return ct_store_end_process(batch->store, process->process_id, ct_monotonic_ns(),
                                exited ? "exited" : "killed");
}

void ct_process_detach(struct ct_process *process)
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
