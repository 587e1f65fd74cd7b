#include "shm_lane.h"

#include "payload.h"
#include "shm_functions.h"
#include "test_point.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* how long to wait for a thread that was stopped between announcing and publishing; after that, its row
     * is late */
    ANNOUNCE_PATIENCE_NS = 100000000,
    SILENCE_PATIENCE_NS = 500000000, /* the time of ten batches, in each of which the thread was announcing */
};

enum { BUFFER_SLOTS = 512, FILLED_MAX = 64 };
static_assert((int)BUFFER_SLOTS >= (int)CT_SLOTS_MAX, "a buffer holds the longest record");

/* The data that a lane needs only while it is active. In a process with thousands of threads, most are silent
 * most of the time. */
struct ct_lane_work {
    uint8_t buffer[BUFFER_SLOTS * CT_SLOT_BYTES]; /* private copies of the slots that begin at buffer_at */
    struct ct_call call[FILLED_MAX];              /* of the stream */
    uint64_t at[FILLED_MAX];                      /* the positions of their records */
};

#define DISTRUST_NS UINT64_C(60000000000) /* after this time, batches wait for a user's threads again */

/* A record's return time must not be in the future by more than the anchors' error. */
#define FUTURE_NS 1000000

static bool fill(struct ct_stream *stream, uint64_t until_ns);

/* Returns the thread_id that the hook's lane has for a companion's thread. The hook takes a lane for a thread
 * before the first call, so the lane is known before any event within a call. If several lanes have the same
 * tid, the newest one belongs to the living thread. */
static int64_t find_thread(const struct ct_caller *caller)
{
    const struct ct_lane_source *source =
        (const struct ct_lane_source *)((const char *)caller - offsetof(struct ct_lane_source, caller));
    int64_t thread_id = 0;
    for (const struct ct_shm_process *p = source->process->shm->processes; p; p = p->next) {
        if (ct_shm_is_companion(p) || p->account.process_id != caller->account->process_id)
            continue;
        for (uint32_t i = 0; i < p->lane_count; i++) {
            const struct ct_caller *other = &p->lanes[i]->caller;
            if (other->tid == caller->tid && other->thread_id > thread_id)
                thread_id = other->thread_id;
        }
    }
    return thread_id;
}

int ct_lane_source_create(struct ct_shm_process *process, uint32_t index, struct ct_lane_source **result)
{
    struct ct_lane *shared;
    const int error = ct_segment_map_lane(&process->map, &process->facts, process->fd, index, &shared);
    struct ct_lane_source *source = error ? NULL : calloc(1, sizeof(*source));
    if (!source)
        return error ? error : -ENOMEM;
    *source = (struct ct_lane_source){
        .stream = { .fill = fill, .budget = process->account.budget },
        .process = process,
        .caller.account = &process->account,
        .caller.find_thread = ct_shm_is_companion(process) ? find_thread : NULL,
        .shared = shared,
        .index = index,
    };
    ct_lane_rings_init(&source->rings, process, shared, index);
    *result = source;
    return 0;
}

void ct_lane_source_destroy(struct ct_lane_source *source)
{
    if (!source)
        return;
    ct_caller_rest(&source->caller);
    free(source->work);
    free(source);
}

static void note_saved(struct ct_lane_source *source)
{
    const struct ct_caller *caller = &source->caller;
    source->saved =
        (struct ct_lane_place){ source->read, caller->thread_id, caller->last_call_id, caller->tid };
}

int ct_lane_source_begin(struct ct_lane_source *source, struct ct_ledger *ledger)
{
    const uint64_t tail = ct_lane_tail(source->shared);
    source->read = tail;
    if (tail > CT_POSITION_MAX)
        source->process->broken = "the position of a lane is outside its ring";
    else if (ct_store_find_lane(ledger->store, source->process->account.segment_id, source->index,
                                &source->read, &source->caller) != 0)
        return -1;
    if (source->read < tail) {
        source->read = tail; /* another database has the earlier records, whose slots have been reused */
        source->caller.last_call_id = 0;
    }
    source->head = source->read;
    note_saved(source);
    source->committed = source->saved;
    return 0;
}

/* Stops the lane. Only calls that have already been filled in are still taken. */
static void break_rule(struct ct_lane_source *source, const char *rule)
{
    source->process->broken = rule;
    source->head = source->stop_at = source->read;
}

/* ---- watermark ---- */

void ct_lane_source_watermark(struct ct_lane_source *source, struct ct_batch *batch)
{
    const struct ct_lane_state state = ct_lane_state(source->shared);
    const struct ct_shm_process *process = source->process;
    const uint64_t silent_ns = process->shm->silent_ns;
    source->batch = batch;
    ct_lane_rings_look(&source->rings);
    if (state.position < source->read ||
        state.position - source->read > ct_ring_slots_all(source->index, source->rings.most)) {
        break_rule(source, "the position of a lane is outside its ring");
        return;
    }
    /* Without this check, the daemon would wait forever for a thread that never stops writing. */
    if ((process->detached && state.position > source->last_position) ||
        (source->ended && state.position != source->head)) {
        break_rule(source, "a lane was written after its process had ended or been detached");
        return;
    }
    source->head = source->stop_at = state.position;
    source->ended = process->final && process->who.seen_pid > 0;
    if (!state.announcing || process->final) {
        source->silent_ns = silent_ns;
        source->announced_since_ns = 0;
        return;
    }
    /* The thread may have read an end time that it has not published yet. Its records are in order and it was
     * silent at silent_ns, so no record older than silent_ns can follow. If the position has moved since the
     * thread was last found announcing a record, the thread has been silent in between. */
    if (source->announced_since_ns == 0 || source->announced_at != state.position) {
        if (source->announced_since_ns != 0)
            source->silent_ns = source->announced_silent_ns;
        source->announced_at = state.position;
        source->announced_since_ns = batch->now_ns;
    }
    source->announced_silent_ns = silent_ns;
    if (batch->now_ns - source->announced_since_ns >= ANNOUNCE_PATIENCE_NS ||
        source->silent_ns >= batch->until_ns)
        return;
    /* A thread of another user that keeps publishing, and is never found silent, delays everyone. Wait for
     * such a thread only once per DISTRUST_NS. */
    struct ct_user *user = process->who.user;
    if (user && batch->now_ns < user->not_waited_until_ns)
        return;
    if (user && batch->now_ns - source->silent_ns > SILENCE_PATIENCE_NS) {
        user->not_waited_until_ns = batch->now_ns + DISTRUST_NS;
        return;
    }
    batch->until_ns = source->silent_ns;
}

/* ---- reading ---- */

/* Makes `slots` slots available in the buffer, starting at `read`. Returns false if some of these slots are
 * not published yet, if the buffer is still in use, or if out of memory. */
static bool make_readable(struct ct_lane_source *source, uint64_t slots)
{
    const uint64_t position = source->read;
    if (source->head - position < slots)
        return false;
    if (position >= source->buffer_at && position + slots <= source->buffer_at + source->buffer_slots)
        return true;
    /* Calls that are already filled in point into the buffer. */
    if (source->work && source->stream.end > source->work->call)
        return false;
    if (!source->work && !(source->work = malloc(sizeof(*source->work))))
        return false;
    uint64_t wanted = source->head - position;
    if (wanted > BUFFER_SLOTS)
        wanted = BUFFER_SLOTS;
    CT_TEST_POINT("lane.fill");
    ct_lane_rings_read(&source->rings, position, wanted, source->work->buffer);
    source->buffer_at = position;
    source->buffer_slots = wanted;
    return true;
}

static uint8_t *slot_at(const struct ct_lane_source *source, uint64_t position)
{
    return source->work->buffer + (position - source->buffer_at) * CT_SLOT_BYTES;
}

static const char *check(const struct ct_lane_source *source, const struct ct_record *record)
{
    if (record->slots == 0)
        return "the length of a record is 0";
    if (record->kind >= CT_KIND_COUNT)
        return "the kind of a record is unknown";
    if (record->slots < CT_HEAD_SLOTS && record->kind != CT_KIND_CALL && record->kind != CT_KIND_PAD)
        return "a record is too short for its kind";
    if (record->slots > CT_SLOTS_MAX)
        return "a record is longer than the maximum";
    if (record->slots > source->head - source->read)
        return "a record is longer than the published data";
    if (record->function >= source->process->published)
        return "a record refers to a function that is not in the directory";
    if (ct_kind_is_call(record->kind) &&
        !ct_shm_may_have(source->process,
                         ct_segment_directory(source->process->shared)[record->function].layer))
        return "a companion of the hook has a call of another layer than `kernel` or `hook`";
    return NULL;
}

/* The batch's time (now_ns) precedes the reading of the positions, so also compare with the current time. */
static bool is_future(const struct ct_lane_source *source, uint64_t ns)
{
    return ns > source->batch->now_ns + FUTURE_NS && ns > ct_monotonic_ns() + FUTURE_NS;
}

/* Computes the times of a call. Returns false if the return time is in the future. */
static bool tell_times(struct ct_lane_source *source, const struct ct_record *record, struct ct_call *call)
{
    struct ct_shm_process *process = source->process;
    uint64_t end_ns = ct_shm_ns(process, record->end, &source->clock_hint);
    if (is_future(source, end_ns)) {
        /* The counter may have jumped since the batch took its anchor. */
        ct_timeline_anchor(&process->shm->timeline);
        end_ns = ct_shm_ns(process, record->end, &source->clock_hint);
        if (is_future(source, end_ns))
            return false;
    }
    const uint64_t start = ct_record_start(record);
    const uint32_t depth = ct_span_depth(record->span);
    const uint64_t start_ns = source->opened[depth].ticks == start
                                  ? source->opened[depth].ns
                                  : ct_shm_ns(process, start, &source->clock_hint);
    call->end_ns = end_ns;
    call->duration_ns = start_ns < end_ns ? end_ns - start_ns : 0;
    return true;
}

/* Fills in the times of GPU work, and converts the payload in the buffer to nanoseconds. By the time its
 * record is read, the work has ended. Its times come from the GPU's clock, which may be a few microseconds
 * ahead of the processor's. Returns false if the payload is invalid. */
static bool convert_gpu_work(struct ct_lane_source *source, const struct ct_record *record,
                             struct ct_call *call)
{
    const struct ct_shm_process *process = source->process;
    uint8_t *payload = slot_at(source, source->read) + sizeof(*record);
    struct ct_gpu_work work;
    if (!ct_gpu_work_read(payload, call->payload_bytes, &work))
        return false;
    call->end_ns = ct_shm_past_ns(process, record->end, &source->clock_hint);
    call->duration_ns = ct_shm_span_ns(process, ct_span_ticks(record->span));
    work.queued = ct_shm_span_ns(process, ct_shm_at_most(work.queued, CT_SPAN_TICKS_MAX));
    memcpy(payload, &work, sizeof(work));
    return true;
}

/* The fate of a record: filled in, left for later, or found to break a rule. */
enum filled { FILLED, LATER, BROKEN };

static enum filled fill_in(struct ct_lane_source *source, const struct ct_record *record, uint64_t until_ns,
                           struct ct_call *call)
{
    struct ct_shm_process *process = source->process;
    *call = (struct ct_call){
        .caller = &source->caller,
        .value = record->value,
        .payload = slot_at(source, source->read) + sizeof(*record),
        .payload_bytes =
            record->slots > CT_HEAD_SLOTS ? (uint16_t)((record->slots - CT_HEAD_SLOTS) * CT_SLOT_BYTES) : 0,
        .status = record->status,
        .kind = record->kind,
        .depth = (uint8_t)ct_span_depth(record->span),
        .flags = (uint8_t)ct_span_flags(record->span),
    };
    if (!ct_kind_is_call(record->kind)) {
        if (record->kind == CT_KIND_NAME)
            call->end_ns = ct_shm_past_ns(process, record->end, &source->clock_hint);
        if (record->kind == CT_KIND_GPU_WORK && !convert_gpu_work(source, record, call)) {
            break_rule(source, "a record of GPU work is too short, or of an unknown kind");
            return BROKEN;
        }
        return FILLED;
    }
    if (!tell_times(source, record, call)) {
        break_rule(source, "the return time of a record is in the future");
        return BROKEN;
    }
    if (call->end_ns > until_ns)
        return LATER;
    call->callee = ct_shm_function(process, source->batch->ledger, record->function);
    return call->callee ? FILLED : LATER;
}

/* Returns whether the user's budget for this batch is spent. If so, records that calls are left over. */
static bool has_spent(struct ct_lane_source *source)
{
    struct ct_budget *budget = source->stream.budget;
    if (!budget || budget->spent < budget->allowance)
        return false;
    budget->is_held = true;
    return true;
}

/* Records when the last call that was taken began. */
static void note_taken(struct ct_lane_source *source)
{
    const struct ct_lane_work *work = source->work;
    for (const struct ct_call *call = source->stream.next; work && call > work->call;) {
        if (!ct_kind_is_call((--call)->kind))
            continue;
        const struct ct_record record = ct_record_get(slot_at(source, work->at[call - work->call]));
        source->last_start = ct_record_start(&record);
        return;
    }
}

/* Rewinds to the end of the calls that were taken. The next batch fills in the rest again. */
static void settle(struct ct_lane_source *source)
{
    struct ct_stream *stream = &source->stream;
    note_taken(source);
    if (stream->next < stream->end) {
        source->read = source->work->at[stream->next - source->work->call];
        source->buffer_slots = 0; /* convert_gpu_work() has changed it */
    }
    stream->next = stream->end = NULL;
}

static bool fill(struct ct_stream *stream, uint64_t until_ns)
{
    struct ct_lane_source *source = (struct ct_lane_source *)stream;
    note_taken(source);
    stream->next = stream->end = source->work ? source->work->call : NULL;
    while (source->read < source->stop_at && !has_spent(source) && make_readable(source, 1)) {
        if (!stream->end)
            stream->next = stream->end = source->work->call;
        struct ct_record record = ct_record_head(slot_at(source, source->read));
        const char *rule = check(source, &record);
        if (rule) {
            break_rule(source, rule);
            break;
        }
        CT_TEST_POINT("lane.checked");
        if (!make_readable(source, record.slots)) /* the buffer is still in use */
            break;
        if (record.kind == CT_KIND_PAD) {
            source->read += record.slots;
            if (stream->budget)
                stream->budget->spent++;
            continue;
        }
        record = ct_record_get(slot_at(source, source->read));
        if (fill_in(source, &record, until_ns, stream->end) != FILLED)
            break;
        CT_TEST_POINT("lane.take");
        source->work->at[stream->end - source->work->call] = source->read;
        source->read += record.slots;
        if (++stream->end == source->work->call + FILLED_MAX)
            break;
    }
    /* Use the thread in the lane's header until a record names a thread. */
    if (source->caller.thread_id == 0 && source->caller.tid == 0)
        source->caller.tid = atomic_load_explicit(&source->shared->tid, memory_order_relaxed);
    return stream->next < stream->end;
}

uint64_t ct_lane_source_opened(struct ct_lane_source *source, uint32_t depth, uint64_t ticks)
{
    if (source->opened[depth].ticks != ticks) {
        source->opened[depth].ticks = ticks;
        source->opened[depth].ns = ct_shm_past_ns(source->process, ticks, &source->clock_hint);
    }
    return source->opened[depth].ns;
}

/* ---- saving ---- */

/* A lane counts the losses of all its owners. A lane gets a new owner only after its losses are saved, so
 * losses saved before the change belong to earlier owners. */
static int save_losses(struct ct_lane_source *source, struct ct_ledger *ledger)
{
    struct ct_lane *lane = source->shared;
    const struct ct_shm_process *process = source->process;
    const uint32_t tenancy = atomic_load_explicit(&lane->tenancy, memory_order_acquire);
    if (tenancy != source->tenancy) {
        memset(source->loss_base, 0, sizeof(source->loss_base));
        if (ct_store_find_losses(ledger->store, process->account.segment_id, source->index, tenancy,
                                 source->loss_base) != 0)
            return -1;
        source->tenancy = tenancy;
    }
    for (uint32_t cause = 0; cause < CT_LANE_LOSS_COUNT; cause++) {
        const uint64_t calls = atomic_load_explicit(&lane->loss[cause].calls, memory_order_acquire);
        /* A new owner increments the tenancy before its first loss. If the tenancy has changed, the count may
         * include the new owner's losses, so leave the count to the next batch. */
        if (atomic_load_explicit(&lane->tenancy, memory_order_relaxed) != tenancy)
            break;
        if (calls <= source->loss_base[cause])
            source->loss_saved[cause] = calls; /* all losses are earlier owners' */
        if (calls == source->loss_saved[cause])
            continue;
        if (calls < source->loss_saved[cause] || calls > CT_UNSENT_CALLS_MAX) {
            source->process->broken = "a lane's number of lost calls has decreased, or is impossibly high";
            return 0;
        }
        if (!ct_user_may_write(process->who.user)) {
            source->process->unfinished = true;
            return 0;
        }
        size_t hint = 0;
        const struct ct_loss_facts facts = {
            .segment_id = process->account.segment_id,
            .lane = source->index,
            .tenancy = tenancy,
            .tid = atomic_load_explicit(&lane->tid, memory_order_relaxed),
            .cause = cause,
            .calls = calls - source->loss_base[cause],
            .first_ns = ct_shm_past_ns(
                process, atomic_load_explicit(&lane->loss[cause].first, memory_order_relaxed), &hint),
            .last_ns = ct_shm_past_ns(
                process, atomic_load_explicit(&lane->loss[cause].last, memory_order_relaxed), &hint),
        };
        if (ct_ledger_save(ledger, &(struct ct_fact){ CT_FACT_LOSS, .loss = facts }) != 0)
            return -1;
        CT_TEST_POINT("lane.loss_saved");
        source->loss_saved[cause] = calls;
    }
    return 0;
}

int ct_lane_source_save(struct ct_lane_source *source, struct ct_ledger *ledger)
{
    settle(source);
    ct_ledger_sum_up(ledger, &source->caller);
    source->waited = source->head - source->committed.position;
    note_saved(source);
    if (save_losses(source, ledger) != 0)
        return -1;
    if (source->saved.position == source->committed.position) {
        ct_caller_rest(&source->caller);
        free(source->work);
        source->work = NULL;
        source->buffer_slots = 0;
        if (source->saved.thread_id == source->committed.thread_id)
            return 0;
    }
    const struct ct_lane_facts lane = { source->process->account.segment_id, source->caller.thread_id,
                                        source->index, source->read };
    return ct_ledger_save(ledger, &(struct ct_fact){ CT_FACT_LANE, &source->caller, .lane = lane });
}

/* Limits how much the producer may still write. The producer notices the detach only after its next record,
 * but even if the rings are full, it cannot write twice their size by then. */
void ct_lane_source_detach(struct ct_lane_source *source)
{
    source->last_position = source->head + 2 * ct_ring_slots_all(source->index, source->rings.most);
    atomic_store_explicit(&source->shared->wake, 0, memory_order_release);
}

uint32_t ct_lane_source_fill(const struct ct_lane_source *source)
{
    const uint64_t capacity = ct_lane_rings_slots(&source->rings);
    return source->waited < capacity ? (uint32_t)(source->waited * 1000 / capacity) : 1000;
}

void ct_lane_source_publish(struct ct_lane_source *source, const struct ct_batch *batch)
{
    struct ct_lane *lane = source->shared;
    const uint64_t position = source->saved.position;
    source->committed = source->saved;
    ct_lane_consume(lane, position);
    CT_TEST_POINT("lane.tail");
    uint64_t seen = 0;
    for (int cause = 0; cause < CT_LANE_LOSS_COUNT; cause++)
        seen += source->loss_saved[cause];
    atomic_store_explicit(&lane->loss_seen, seen, memory_order_release);
    CT_TEST_POINT("lane.loss_seen");
    /* A busy collector will read the lane again anyway, and needs the doorbell only if the lane fills up
     * before that. An idle collector needs the doorbell at the next record. */
    const uint64_t wake =
        position + (source->process->shm->quiet ? 1 : ct_lane_rings_slots(&source->rings) / 2);
    atomic_store_explicit(&lane->wake, source->process->call_soon ? 0 : wake, memory_order_relaxed);
    CT_TEST_POINT("lane.wake");
    ct_lane_rings_tidy(&source->rings, position, source->waited, batch->now_ns,
                       &source->process->shm->give_back_bytes);
}

void ct_lane_source_revert(struct ct_lane_source *source)
{
    source->stream.next = source->stream.end = NULL;
    source->saved = source->committed;
    source->read = source->committed.position;
    source->caller.thread_id = source->committed.thread_id;
    source->caller.last_call_id = source->committed.last_call_id;
    source->caller.tid = source->committed.tid;
    source->caller.calls = source->caller.driver_ns = 0;
    source->buffer_slots = 0;
    memset(source->loss_saved, 0, sizeof(source->loss_saved));
}

/* Counts the waiting calls. The contents of the rings are not trusted, so the sizes of the rings limit the
 * count. */
uint64_t ct_lane_source_waiting(struct ct_lane_source *source)
{
    uint8_t buffer[BUFFER_SLOTS * CT_SLOT_BYTES];
    const uint64_t end = ct_lane_state(source->shared).position;
    uint64_t calls = 0, at = source->committed.position;
    if (at > end || end - at > ct_ring_slots_all(source->index, source->rings.most))
        return 0;
    ct_lane_rings_look(&source->rings);
    while (at < end) {
        const uint64_t slots = end - at < BUFFER_SLOTS ? end - at : BUFFER_SLOTS;
        ct_lane_rings_read(&source->rings, at, slots, buffer);
        for (uint64_t i = 0; i < slots;) {
            const struct ct_record record = ct_record_head(buffer + i * CT_SLOT_BYTES);
            if (record.slots == 0)
                return calls;
            calls += ct_kind_is_call(record.kind) != 0;
            i += record.slots;
            at += record.slots;
        }
    }
    return calls;
}
