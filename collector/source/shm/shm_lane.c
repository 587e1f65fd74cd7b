#include "shm_lane.h"

#include "detail.h"
#include "role.h"
#include "test_point.h"
#include "text_numbers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* A thread that was stopped between announcing and publishing is waited for this long; its row is late
       then. */
    ANNOUNCE_PATIENCE_NS = 100000000,
    SILENCE_PATIENCE_NS = 500000000, /* ten batches in a row that found it announcing */
};

enum { PLACE_EFFORT = 8 };                     /* to save the place of a lane, in rows of plain calls */
enum { BUFFER_SLOTS = 256, KNOWN_SITES = 64 }; /* a buffer holds the longest record: CT_SLOTS_MAX */

/* The site of calls like this one, as the store numbered it. */
struct known_site {
    uint64_t call;   /* function, depth and status */
    int64_t site_id; /* 0: none known here */
};

/* What a lane needs that is not silent: of thousands of threads most are most of the time. */
struct ct_lane_work {
    uint8_t buffer[BUFFER_SLOTS * CT_SLOT_BYTES]; /* private copies of the slots from buffer_at on */
    struct known_site known[KNOWN_SITES];         /* of place.thread_id, by function */
};

#define DISTRUST_NS UINT64_C(60000000000) /* how long a user's threads are not waited for */

/* A record may not claim to have returned in the future, but for the error of the anchors. */
#define FUTURE_NS 1000000

static const struct ct_source_class lane_class;

int ct_lane_source_create(struct ct_process *process, uint32_t index, struct ct_lane_source **result)
{
    struct ct_lane *shared;
    const int error = ct_segment_map_lane(&process->map, &process->facts, process->fd, index, &shared);
    struct ct_lane_source *source = error ? NULL : calloc(1, sizeof(*source));
    if (!source)
        return error ? error : -ENOMEM;
    *source = (struct ct_lane_source){
        .source.class = &lane_class,
        .process = process,
        .shared = shared,
        .index = index,
        .ring_slots = process->facts.ring_bytes / CT_SLOT_BYTES,
        .capacity = CT_CHUNK_BYTES / CT_SLOT_BYTES,
    };
    *result = source;
    return 0;
}

void ct_lane_source_destroy(struct ct_lane_source *source)
{
    if (!source)
        return;
    free(source->work);
    free(source);
}

static void break_rule(struct ct_lane_source *source, const char *rule)
{
    source->process->broken = rule;
    source->head = source->place.position;
    source->peeked = false;
}

/* ---- watermark ---- */

/* False when it is none that a hook writes: it is a power of two, and grows. */
static bool read_capacity(struct ct_lane_source *source)
{
    const uint64_t capacity = ct_lane_capacity(source->shared);
    if (capacity < source->capacity || capacity > source->ring_slots || (capacity & (capacity - 1)) != 0)
        return false;
    source->capacity = capacity;
    return true;
}

void ct_lane_source_watermark(struct ct_lane_source *source, struct ct_batch *batch)
{
    const struct ct_lane_state state = ct_lane_state(source->shared);
    const struct ct_process *process = source->process;
    if (!read_capacity(source)) {
        break_rule(source, "a lane's ring shrinks, or grows beyond what it may have");
        return;
    }
    if (state.position < source->place.position ||
        state.position - source->place.position > source->capacity) {
        break_rule(source, "a lane's position is out of its ring");
        return;
    }
    /* Who writes on and on would be waited for without end. */
    if ((process->detached && state.position > source->last_position) ||
        (source->ended && state.position != source->head)) {
        break_rule(source, "a lane is written after its process had ended or was told to let go");
        return;
    }
    source->head = source->stop_at = state.position;
    source->ended = process->final && process->seen_pid > 0;
    if (!state.announcing || process->final) {
        source->silent_ns = batch->silent_ns;
        source->announced_since_ns = 0;
        return;
    }
    /* It may have read an end time that it has not published. What it published before is in order, and it
     * was silent at silent_ns: nothing older than either is to come. If it has moved since it was found like
     * this last, it was silent after that look. */
    if (source->announced_since_ns == 0 || source->announced_at != state.position) {
        if (source->announced_since_ns != 0)
            source->silent_ns = source->announced_silent_ns;
        source->announced_at = state.position;
        source->announced_since_ns = batch->now_ns;
    }
    source->announced_silent_ns = batch->silent_ns;
    if (batch->now_ns - source->announced_since_ns >= ANNOUNCE_PATIENCE_NS ||
        source->silent_ns >= batch->until_ns)
        return;
    /* Another user's thread that goes on publishing and is never found silent holds up all others: once is
     * enough. */
    struct ct_user *user = process->user;
    if (user && batch->now_ns < user->not_waited_until_ns)
        return;
    if (user && batch->now_ns - source->silent_ns > SILENCE_PATIENCE_NS) {
        user->not_waited_until_ns = batch->now_ns + DISTRUST_NS;
        return;
    }
    batch->until_ns = source->silent_ns;
}

/* ---- reading ---- */

/* Makes `slots` slots from the position on readable in the buffer; false when they are not all published, or
 * without memory: then they stay where they are. */
static bool fill(struct ct_lane_source *source, uint64_t slots)
{
    const uint64_t position = source->place.position;
    if (source->head - position < slots)
        return false;
    if (position >= source->buffer_at && position + slots <= source->buffer_at + source->buffer_slots)
        return true;
    if (!source->work && (source->work = malloc(sizeof(*source->work))) != NULL)
        ct_lane_source_forget_sites(source);
    if (!source->work)
        return false;
    uint64_t wanted = source->head - position;
    if (wanted > BUFFER_SLOTS)
        wanted = BUFFER_SLOTS;
    const uint8_t *ring = (const uint8_t *)source->shared + CT_LANE_HEADER_BYTES;
    const uint64_t place = position & (source->capacity - 1);
    const uint64_t first = wanted < source->capacity - place ? wanted : source->capacity - place;
    CT_TEST_POINT("lane.fill");
    memcpy(source->work->buffer, ring + place * CT_SLOT_BYTES, first * CT_SLOT_BYTES);
    memcpy(source->work->buffer + first * CT_SLOT_BYTES, ring, (wanted - first) * CT_SLOT_BYTES);
    source->buffer_at = position;
    source->buffer_slots = wanted;
    return true;
}

static const uint8_t *slot_at(const struct ct_lane_source *source)
{
    return source->work->buffer + (source->place.position - source->buffer_at) * CT_SLOT_BYTES;
}

const void *ct_lane_source_payload(const struct ct_lane_source *source)
{
    return slot_at(source) + CT_SLOT_BYTES;
}

/* What the thread did since its sums were saved last. */
static void sum_up(struct ct_lane_source *source)
{
    if (source->sums.calls > 0)
        ct_store_defer(source->batch->store, CT_ADD_TO_THREAD, 3,
                       (const int64_t[]){ source->place.thread_id, (int64_t)source->sums.calls,
                                          (int64_t)source->sums.driver_ns },
                       NULL);
    source->sums.calls = source->sums.driver_ns = 0;
}

static void set_thread(struct ct_lane_source *source, uint32_t tid, const char *name)
{
    sum_up(source);
    source->place.tid = tid;
    source->place.thread_id = ct_store_thread(source->batch->store, source->process->process_id, tid, name);
    ct_lane_source_forget_sites(source);
}

/* A thread does the same again and again: what it did last with a function is found without the store. */
static int64_t site_of(struct ct_lane_source *source, const struct ct_record *record, int64_t function_id)
{
    const uint32_t depth = ct_span_depth(record->span);
    const uint64_t call = (uint64_t)record->function << 40 | (uint64_t)depth << 32 | (uint32_t)record->status;
    struct known_site *known = &source->work->known[(record->function ^ depth << 4) % KNOWN_SITES];
    if (known->call != call || known->site_id == 0) {
        known->call = call;
        known->site_id =
            ct_store_site(source->batch->store, source->place.thread_id, function_id, depth, record->status);
    }
    return known->site_id;
}

/* An object has a name from here on, or none. */
static void name_object(struct ct_lane_source *source, const struct ct_record *record, const uint8_t *payload,
                        size_t payload_bytes)
{
    struct ct_object_name name;
    struct ct_store *store = source->batch->store;
    if (payload_bytes <= sizeof(name))
        return;
    memcpy(&name, payload, sizeof(name));
    const char *text = (const char *)payload + sizeof(name);
    if (name.role == CT_ROLE_none || name.role >= CT_ROLE_COUNT || name.text_bytes == 0 ||
        name.text_bytes > payload_bytes - sizeof(name) || text[name.text_bytes - 1] != '\0')
        return;
    char clean[CT_SLOTS_MAX * CT_SLOT_BYTES];
    ct_text_clean(clean, text, strlen(text));
    const int64_t process_id = source->process->process_id, handle = ct_stored(record->value);
    const uint64_t named_ns =
        ct_process_past_ns(source->process, source->batch, record->end, &source->clock_hint);
    ct_store_defer(store, CT_NAME_OBJECT, 4,
                   (const int64_t[]){ process_id, name.role, handle, (int64_t)named_ns }, clean);
    if (name.role == CT_ROLE_thread && *clean)
        ct_store_defer(store, CT_NAME_THREAD, 2, (const int64_t[]){ process_id, handle }, clean);
}

/* Whether its user has had what there is for him of this batch: what is left is the next one's. */
static bool has_spent(const struct ct_lane_source *source)
{
    struct ct_user *user = source->process->user;
    if (!user || user->spent < user->allowance)
        return false;
    user->is_held = true;
    return true;
}

/* Puts on his account what a record costs. */
static void charge(const struct ct_lane_source *source, uint64_t effort)
{
    if (source->process->user)
        source->process->user->spent += 1 + effort;
}

/* A record that is no call: it takes effect where it stands. */
static void absorb(struct ct_lane_source *source, const struct ct_record *record)
{
    const uint8_t *payload = slot_at(source) + CT_SLOT_BYTES;
    const size_t payload_bytes = (size_t)(record->slots - 1) * CT_SLOT_BYTES;
    struct ct_process *process = source->process;
    struct ct_store *store = source->batch->store;
    const uint64_t before = ct_store_effort(store);
    if (record->kind == CT_KIND_THREAD && record->slots >= 2) {
        struct ct_thread_name name;
        memcpy(&name, payload, sizeof(name));
        char clean[sizeof(name.name)];
        name.name[sizeof(name.name) - 1] = '\0';
        ct_text_clean(clean, name.name, strlen(name.name));
        set_thread(source, (uint32_t)record->value, clean);
    } else if (record->kind == CT_KIND_STRING && payload_bytes > 0 &&
               memchr(payload, '\0', payload_bytes) != NULL) {
        char clean[CT_SLOTS_MAX * CT_SLOT_BYTES];
        ct_text_clean(clean, (const char *)payload, strlen((const char *)payload));
        ct_store_defer(store, CT_DEFINE_KERNEL, 2,
                       (const int64_t[]){ process->process_id, ct_stored(record->value) }, clean);
    } else if (record->kind == CT_KIND_NAME) {
        name_object(source, record, payload, payload_bytes);
    }
    source->place.position += record->slots;
    charge(source, ct_store_effort(store) - before);
}

static const char *check(const struct ct_lane_source *source, const struct ct_record *record)
{
    if (record->slots == 0)
        return "a record has no length";
    if (record->kind >= CT_KIND_COUNT)
        return "a record is of no known kind";
    if (record->slots > source->head - source->place.position)
        return "a record is longer than what was published";
    if (record->function >= source->process->published)
        return "a record names a function that is not in the directory";
    return NULL;
}

static bool peek(struct ct_source *base, uint64_t until_ns)
{
    struct ct_lane_source *source = (struct ct_lane_source *)base;
    while (!source->peeked) {
        /* Threads and strings take room as calls do. This source is the first to go on in the next batch. */
        if (ct_store_is_full(source->batch->store)) {
            source->source.end_ns = 0;
            return true;
        }
        if (source->place.position >= source->stop_at || has_spent(source) || !fill(source, 1))
            return false;
        struct ct_record record;
        memcpy(&record, slot_at(source), sizeof(record));
        const char *rule = check(source, &record);
        if (rule) {
            break_rule(source, rule);
            return false;
        }
        CT_TEST_POINT("lane.checked");
        fill(source, record.slots); /* published, as check() found */
        if (!ct_kind_is_call(record.kind)) {
            absorb(source, &record);
            continue;
        }
        uint64_t end_ns = ct_process_ns(source->process, source->batch, record.end, &source->clock_hint);
        /* The batch's time lies behind: heads are read later than it. The counter may have stepped since the
         * batch's anchor. */
        if (end_ns > source->batch->now_ns + FUTURE_NS && end_ns > ct_monotonic_ns() + FUTURE_NS) {
            ct_timeline_anchor(source->batch->timeline);
            end_ns = ct_process_ns(source->process, source->batch, record.end, &source->clock_hint);
        }
        if (end_ns > source->batch->now_ns + FUTURE_NS && end_ns > ct_monotonic_ns() + FUTURE_NS) {
            break_rule(source, "a record says that it will return in the future");
            return false;
        }
        source->record = record;
        source->source.end_ns = end_ns;
        source->peeked = true;
    }
    return source->source.end_ns <= until_ns;
}

uint64_t ct_lane_source_opened(struct ct_lane_source *source, uint32_t depth, uint64_t ticks)
{
    if (source->opened[depth].ticks != ticks) {
        source->opened[depth].ticks = ticks;
        source->opened[depth].ns =
            ct_process_past_ns(source->process, source->batch, ticks, &source->clock_hint);
    }
    return source->opened[depth].ns;
}

static void take(struct ct_source *base, struct ct_row *row)
{
    struct ct_lane_source *source = (struct ct_lane_source *)base;
    struct ct_process *process = source->process;
    const struct ct_record *record = &source->record;
    struct ct_process_function *function = ct_process_function(process, source->batch, record->function);
    struct ct_total_facts *total = ct_process_total(process, source->batch, function);
    CT_TEST_POINT("lane.take");
    if (source->place.thread_id == 0)
        set_thread(source, atomic_load_explicit(&source->shared->tid, memory_order_relaxed), "");
    const uint64_t start = ct_record_start(record);
    const uint32_t depth = ct_span_depth(record->span);
    const uint64_t start_ns = source->opened[depth].ticks == start
                                  ? source->opened[depth].ns
                                  : ct_process_ns(process, source->batch, start, &source->clock_hint);
    row->end_ns = source->source.end_ns;
    row->duration_ns = start_ns < row->end_ns ? row->end_ns - start_ns : 0;
    row->site_id = site_of(source, record, function->function_id);
    const uint32_t flags = ct_span_flags(record->span);
    const bool plain = record->kind == CT_KIND_CALL || record->kind == CT_KIND_OBJECTS;
    row->has_bytes = record->kind == CT_KIND_TRANSFER ||
                     (record->kind == CT_KIND_ALLOC && !(flags & (CT_FLAG_FREE | CT_FLAG_UNKNOWN))) ||
                     (plain && flags & CT_FLAG_BYTES);
    row->bytes = record->value < INT64_MAX ? record->value : INT64_MAX;
    if (record->kind != CT_KIND_CALL)
        ct_detail_store(source, row);

    total->min_ns = total->calls == 0 || row->duration_ns < total->min_ns ? row->duration_ns : total->min_ns;
    total->max_ns = row->duration_ns > total->max_ns ? row->duration_ns : total->max_ns;
    total->total_ns =
        row->duration_ns < INT64_MAX - total->total_ns ? total->total_ns + row->duration_ns : INT64_MAX;
    /* What was asked for and refused moved nothing. */
    if (row->has_bytes && record->status == 0)
        total->bytes = row->bytes < INT64_MAX - total->bytes ? total->bytes + row->bytes : INT64_MAX;
    total->failed += ct_status_is_failure(record->status);
    total->calls++;
    ct_process_count(process, source->batch, record, row);
    charge(source, ct_store_effort(source->batch->store) +
                       (source->place.position == source->committed.position ? PLACE_EFFORT : 0));
    source->sums.calls++;
    if (function->is_driver && row->duration_ns < INT64_MAX - source->sums.driver_ns)
        source->sums.driver_ns += row->duration_ns;

    source->last_start = start;
    source->place.position += record->slots;
    source->peeked = false;
}

static const struct ct_source_class lane_class = { .peek = peek, .take = take };

/* ---- saving ---- */

/* Losses are counted by lane for all its owners; a lane changes hands only once its losses are saved, so what
 * was saved is what earlier owners lost. */
static int save_losses(struct ct_lane_source *source, struct ct_batch *batch)
{
    struct ct_lane *lane = source->shared;
    const struct ct_process *process = source->process;
    const uint32_t tenancy = atomic_load_explicit(&lane->tenancy, memory_order_acquire);
    if (tenancy != source->tenancy) {
        memset(source->loss_base, 0, sizeof(source->loss_base));
        if (ct_store_find_losses(batch->store, process->segment_id, source->index, tenancy,
                                 source->loss_base) != 0)
            return -1;
        source->tenancy = tenancy;
    }
    for (uint32_t cause = 0; cause < CT_LOSS_COUNT; cause++) {
        const uint64_t calls = atomic_load_explicit(&lane->loss[cause].calls, memory_order_acquire);
        /* What is counted may be the next owner's by now, who counted its tenancy before: the next batch's.
         */
        if (atomic_load_explicit(&lane->tenancy, memory_order_relaxed) != tenancy)
            break;
        if (calls <= source->loss_base[cause])
            source->loss_saved[cause] = calls; /* all of earlier owners */
        if (calls == source->loss_saved[cause])
            continue;
        if (calls < source->loss_saved[cause] || calls > CT_UNSENT_CALLS_MAX) {
            source->process->broken = "a lane has lost fewer calls than before, or more than there can be";
            return 0;
        }
        if (!ct_user_may_write(process->user)) {
            source->process->unfinished = true;
            return 0;
        }
        size_t hint = 0;
        const struct ct_loss_facts facts = {
            .segment_id = process->segment_id,
            .lane = source->index,
            .tenancy = tenancy,
            .tid = atomic_load_explicit(&lane->tid, memory_order_relaxed),
            .cause = cause,
            .calls = calls - source->loss_base[cause],
            .first_ns = ct_process_past_ns(
                process, batch, atomic_load_explicit(&lane->loss[cause].first, memory_order_relaxed), &hint),
            .last_ns = ct_process_past_ns(
                process, batch, atomic_load_explicit(&lane->loss[cause].last, memory_order_relaxed), &hint),
        };
        if (ct_store_save_loss(batch->store, &facts) != 0)
            return -1;
        CT_TEST_POINT("lane.loss_saved");
        source->loss_saved[cause] = calls;
    }
    return 0;
}

int ct_lane_source_save(struct ct_lane_source *source, struct ct_batch *batch)
{
    sum_up(source);
    if (save_losses(source, batch) != 0)
        return -1;
    if (source->place.position == source->committed.position &&
        source->place.thread_id == source->committed.thread_id)
        return 0;
    return ct_store_save_lane(batch->store, source->process->segment_id, source->index, &source->place);
}

/* The ring may be full, and a producer looks behind its next record: twice the ring is more than can come. */
void ct_lane_source_detach(struct ct_lane_source *source)
{
    source->last_position = source->head + 2 * source->ring_slots;
    atomic_store_explicit(&source->shared->wake, 0, memory_order_release);
}

uint32_t ct_lane_source_publish(struct ct_lane_source *source, bool idle)
{
    struct ct_lane *lane = source->shared;
    const uint64_t used = source->head - source->committed.position;
    const uint64_t fill = used < source->capacity ? used * 1000 / source->capacity : 1000;
    if (source->place.position == source->committed.position && !source->peeked) {
        free(source->work);
        source->work = NULL;
        source->buffer_slots = 0;
    }
    source->committed = source->place;
    ct_lane_consume(lane, source->place.position);
    CT_TEST_POINT("lane.tail");
    uint64_t seen = 0;
    for (int cause = 0; cause < CT_LOSS_COUNT; cause++)
        seen += source->loss_saved[cause];
    atomic_store_explicit(&lane->loss_seen, seen, memory_order_release);
    CT_TEST_POINT("lane.loss_seen");
    /* A busy collector comes by itself, and wants to be called when a ring fills faster than that; one that
     * goes to sleep wants to hear of the next record. */
    const uint64_t wake = source->place.position + (idle ? 1 : source->capacity / 2);
    atomic_store_explicit(&lane->wake, source->process->call_soon ? 0 : wake, memory_order_relaxed);
    CT_TEST_POINT("lane.wake");
    return (uint32_t)fill;
}

void ct_lane_source_forget_sites(struct ct_lane_source *source)
{
    if (source->work)
        memset(source->work->known, 0, sizeof(source->work->known));
}

void ct_lane_source_revert(struct ct_lane_source *source)
{
    source->place = source->committed;
    source->peeked = false;
    source->buffer_slots = 0;
    source->sums.calls = source->sums.driver_ns = 0;
    ct_lane_source_forget_sites(source);
    memset(source->loss_saved, 0, sizeof(source->loss_saved));
}

/* Whatever stands there is believed no further than the ring goes. */
uint64_t ct_lane_source_waiting(const struct ct_lane_source *source)
{
    const uint8_t *ring = (const uint8_t *)source->shared + CT_LANE_HEADER_BYTES;
    const uint64_t end = ct_lane_state(source->shared).position;
    uint64_t capacity = ct_lane_capacity(source->shared), calls = 0;
    if (capacity > source->ring_slots || (capacity & (capacity - 1)) != 0)
        capacity = 0;
    for (uint64_t at = source->committed.position; at < end && end - at <= capacity;) {
        struct ct_record record;
        memcpy(&record, ring + (at & (capacity - 1)) * CT_SLOT_BYTES, sizeof(record));
        if (record.slots == 0)
            break;
        calls += ct_kind_is_call(record.kind) != 0;
        at += record.slots;
    }
    return calls;
}
