#include "process.h"

#include "category.h"
#include "ioctl_names.h"
#include "lane.h"
#include "selection.h"
#include "test_point.h"
#include "texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const category_names[CT_CATEGORY_COUNT] = {
#define CATEGORY(name) #name,
#include "category.def"
#undef CATEGORY
};

/* ---- functions ---- */

static struct ct_function *directory(const struct ct_process *process)
{
    return (struct ct_function *)(void *)((uint8_t *)process->shared + CT_DIRECTORY_OFFSET);
}

/* A name as the database may have it: printable ASCII, ended. */
static void copy_name(char *to, const char *from)
{
    size_t i = 0;
    for (; i < CT_FUNCTION_NAME_MAX && from[i]; i++)
        to[i] = from[i] > ' ' && from[i] <= '~' ? from[i] : (from[i] == ' ' ? ' ' : '?');
    to[i] = '\0';
}

/* Room for `count` functions. Most processes use a few dozen of the thousands that a directory may have. */
static bool make_room(struct ct_process *process, uint32_t count)
{
    if (count <= process->function_room)
        return true;
    uint32_t room = process->function_room * 2;
    while (room < count)
        room *= 2;
    struct ct_process_function *functions = realloc(process->functions, room * sizeof(*functions));
    if (!functions)
        return false;
    memset(functions + process->function_room, 0, (room - process->function_room) * sizeof(*functions));
    process->functions = functions;
    process->function_room = room;
    return true;
}

static int sync_functions(struct ct_process *process, struct ct_batch *batch)
{
    const uint32_t published = atomic_load_explicit(&process->shared->functions, memory_order_acquire);
    if (published > process->facts.function_slots) {
        process->broken = "its directory is longer than it has room for";
        return 0;
    }
    if (!make_room(process, published)) {
        ct_store_short_of_memory(batch->store);
        return -1;
    }
    for (uint32_t i = process->function_count; i < published; i++) {
        struct ct_function entry;
        memcpy(&entry, &directory(process)[i], sizeof(entry));
        char name[CT_FUNCTION_NAME_MAX + 1], translated[CT_IOCTL_NAME_MAX + 1];
        copy_name(name, entry.name);
        const bool is_translated =
            entry.layer == CT_LAYER_IOCTL &&
            ct_ioctl_names_find(name, ct_ioctl_driver_release(), translated, &entry.category);
        const char *layer = ct_layer_names[entry.layer < CT_LAYER_COUNT ? entry.layer : CT_LAYER_DRIVER];
        const char *category =
            category_names[entry.category < CT_CATEGORY_COUNT ? entry.category : CT_CATEGORY_other];
        if (ct_store_function(batch->store, layer, is_translated ? translated : name, category,
                              &process->functions[i].function_id) != 0)
            return -1;
        process->functions[i].is_driver = entry.layer == CT_LAYER_DRIVER;
        process->function_count = i + 1;
    }
    return 0;
}

static uint64_t at_most(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

uint64_t ct_batch_past_ns(const struct ct_batch *batch, uint64_t ticks, size_t *hint)
{
    return at_most(ct_timeline_ns(batch->timeline, ticks, hint), ct_monotonic_ns());
}

/* The counters of one function, read once each. They only grow, and calls are counted last: what is read here
 * is never more than has happened. */
static int save_unsent(struct ct_process *process, struct ct_batch *batch, uint32_t i)
{
    struct ct_function *entry = &directory(process)[i];
    struct ct_process_function *function = &process->functions[i];
#define READ(field) atomic_load_explicit(&entry->field, memory_order_acquire)
    const uint64_t lost = READ(lost_calls), skipped = READ(skipped_calls);
    if (lost == function->unsent.lost && skipped == function->unsent.skipped)
        return 0;
    if (lost < function->unsent.lost || skipped < function->unsent.skipped || lost > CT_UNSENT_CALLS_MAX ||
        skipped > CT_UNSENT_CALLS_MAX) {
        process->broken = "it has lost or skipped fewer calls than before, or more than there can be";
        return 0;
    }
    const struct ct_unsent_facts facts = {
        .lost = lost,
        .lost_ns = at_most(ct_timeline_span_ns(batch->timeline, READ(lost_ticks)), CT_UNSENT_SUM_MAX),
        .lost_bytes = at_most(READ(lost_bytes), CT_UNSENT_SUM_MAX),
        .skipped = skipped,
        .skipped_ns = at_most(ct_timeline_span_ns(batch->timeline, READ(skipped_ticks)), CT_UNSENT_SUM_MAX),
        .skipped_bytes = at_most(READ(skipped_bytes), CT_UNSENT_SUM_MAX),
    };
#undef READ
    if (ct_store_save_unsent(batch->store, process->segment_id, i, function->function_id, &facts) != 0)
        return -1;
    function->unsent_now = facts;
    return 0;
}

/* ---- a batch ---- */

static int sync_lanes(struct ct_process *process, struct ct_batch *batch)
{
    const uint32_t published = atomic_load_explicit(&process->shared->lanes, memory_order_acquire);
    if (published > process->facts.lane_slots) {
        process->broken = "it has more lanes than it has room for";
        return 0;
    }
    if (published > process->lane_count) {
        struct ct_lane_source **lanes = realloc(process->lanes, published * sizeof(struct ct_lane_source *));
        if (!lanes)
            return 0; /* the next batch tries again */
        process->lanes = lanes;
    }
    while (process->lane_count < published) {
        if (process->user && process->user->lanes >= CT_USER_LANES_MAX)
            return 0; /* until others of his threads' have gone */
        struct ct_lane_source *lane;
        const int error = ct_lane_source_create(process, process->lane_count, &lane);
        if (error == -EPROTO)
            process->broken = "its file ends before its lanes";
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
        if (process->user)
            process->user->lanes++;
        CT_TEST_POINT("process.lane");
    }
    return 0;
}

int ct_process_sync(struct ct_process *process, struct ct_batch *batch)
{
    if (batch->snapshot_open && ct_process_is_over(process))
        atomic_store(&process->dead, true);
    process->final = atomic_load_explicit(&process->dead, memory_order_acquire);
    const bool renumber = process->generation != ct_store_generation(batch->store);
    if (!process->registered || renumber) {
        size_t hint = 0;
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
        process->function_count = 0;
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
    if (sync_functions(process, batch) != 0)
        return -1;
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
        if (open[d].function >= process->function_count && sync_functions(process, batch) != 0)
            return -1;
        const uint32_t function = open[d].function < process->function_count ? open[d].function : 0;
        const uint64_t start_ns = ct_lane_source_opened(lane, (uint32_t)d, open[d].start);
        if (ct_store_open_call(batch->store, process->process_id, lane->place.thread_id, (uint32_t)d,
                               process->functions[function].function_id, start_ns) != 0)
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
    if (ct_store_clear_open_calls(batch->store, process->process_id) != 0)
        return -1;
    /* Read again, since they run: what counts is what was written. */
    bool complete = true;
    signature = 0;
    for (uint32_t i = 0; i < process->lane_count; i++) {
        struct ct_lane_source *lane = process->lanes[i];
        const size_t depth = read_open(lane, open);
        if (depth > 0 && lane->place.thread_id == 0) {
            complete = false; /* its first record is still to come: again next time */
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
        .first_ns = ct_batch_past_ns(batch, atomic_load_explicit(&loss->first, memory_order_relaxed), &hint),
        .last_ns = ct_batch_past_ns(batch, atomic_load_explicit(&loss->last, memory_order_relaxed), &hint),
    };
    if (ct_store_save_loss(batch->store, &facts) != 0)
        return -1;
    process->unlaned_saved = calls;
    return 0;
}

/* ---- counts of a batch ---- */

/* The key: the function's entry, whether it is a status, and that or the duration's bucket. */
static uint64_t tally_key(uint32_t entry, bool is_status, uint32_t value)
{
    return (uint64_t)entry << 33 | (uint64_t)is_status << 32 | value;
}

void ct_process_count(struct ct_process *process, struct ct_batch *batch, const struct ct_record *record,
                      const struct ct_row *row)
{
    bool counted = ct_tally_add(&process->tally,
                                tally_key(record->function, false, ct_duration_bucket(row->duration_ns)), row->end_ns);
    if (ct_status_is_failure(record->status))
        counted &= ct_tally_add(&process->tally, tally_key(record->function, true, (uint32_t)record->status),
                                row->end_ns);
    if (!counted)
        ct_store_short_of_memory(batch->store);
}

struct save_counts {
    struct ct_process *process;
    struct ct_store *store;
};

static int save_count(const struct ct_tally_count *count, void *data)
{
    const struct save_counts *to = data;
    const int64_t function_id = to->process->functions[count->key >> 33].function_id;
    if (count->key >> 32 & 1)
        return ct_store_add_failure(to->store, to->process->process_id, function_id, (int32_t)count->key, count);
    return ct_store_add_duration(to->store, to->process->process_id, function_id, (uint32_t)count->key, count);
}

int ct_process_save(struct ct_process *process, struct ct_batch *batch)
{
    /* It has not so much as a segment to its name. */
    if (process->segment_id == 0)
        return 0;
    for (uint32_t i = 0; i < process->function_count; i++) {
        struct ct_process_function *function = &process->functions[i];
        if (function->total.calls > 0 && ct_store_add_total(batch->store, process->process_id,
                                                            function->function_id, &function->total) != 0)
            return -1;
        function->total = (struct ct_total_facts){ 0 };
        if (save_unsent(process, batch, i) != 0)
            return -1;
    }
    if (ct_tally_each(&process->tally, save_count, &(struct save_counts){ process, batch->store }) != 0)
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
    for (uint32_t i = 0; i < process->function_count; i++) {
        if (process->functions[i].unsent_now.lost || process->functions[i].unsent_now.skipped)
            process->functions[i].unsent = process->functions[i].unsent_now;
    }
    for (uint32_t i = 0; i < process->lane_count; i++) {
        const uint32_t of_lane = ct_lane_source_publish(process->lanes[i], idle);
        fill = of_lane > fill ? of_lane : fill;
        CT_TEST_POINT("process.lane_published");
    }
    if (atomic_load(&process->guard->poisoned))
        process->broken = "its file was cut short";
    for (uint32_t i = 0; i < process->lane_count; i++) {
        if (atomic_load(&process->lanes[i]->guard->poisoned))
            process->broken = "its file was cut short";
    }
    return fill;
}

void ct_process_forget_sites(struct ct_process *process)
{
    for (uint32_t i = 0; i < process->lane_count; i++)
        ct_lane_source_forget_sites(process->lanes[i]);
}

void ct_process_revert(struct ct_process *process)
{
    for (uint32_t i = 0; i < process->function_room; i++) {
        process->functions[i].total = (struct ct_total_facts){ 0 };
        process->functions[i].unsent_now = process->functions[i].unsent;
    }
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
    const bool may_read_more = !process->user || process->user->lanes < CT_USER_LANES_MAX;
    return has_unread_lanes(process) && may_read_more && !process->broken;
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
