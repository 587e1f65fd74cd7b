/* Writing records, the long way: calls with decoded arguments, clocks that are a function, full rings, loss.
 * Called by entry.c for whatever its short way does not cover. */
#include "decoders.h"
#include "graphs.h"
#include "quiet.h"
#include "segment_file.h"
#include "system.h"
#include "test_point.h"

#include <signal.h>
#include <string.h>

/* What a stub answers when there is no such function: with the hook away, the program would not have been
 * linked at all. CUDA_ERROR_NOT_FOUND, cudaErrorSharedObjectSymbolNotFound, and no text. */
static ct_status missing_driver_function(void)
{
    return 500;
}
static ct_status missing_runtime_function(void)
{
    return 302;
}
static const char *missing_text(void)
{
    return NULL;
}

static void *missing_function(const struct ct_row *row)
{
    if (row->decode == ct_decode_no_status)
        return (void *)(uintptr_t)missing_text;
    return row->layer == CT_LAYER_RUNTIME ? (void *)(uintptr_t)missing_runtime_function
                                          : (void *)(uintptr_t)missing_driver_function;
}

/* Begins the record of a call, if there is somewhere to write it. */
static void begin(struct ct_frame *frame, const struct ct_row *row)
{
    const bool attached = ct_thread_attach(ct_frame_place(frame));
    if (!attached && !ct_process_current())
        return;
    uint16_t id = atomic_load_explicit(&row->id, memory_order_acquire);
    if (!id)
        id = ct_segment_define(frame->row);
    CT_TEST_POINT("record.defined");
    if (attached) {
        frame->producer = ct_self;
        frame->depth = ct_depth_enter(ct_self, ct_frame_place(frame));
        frame->start = ct_now();
        CT_TEST_POINT("record.entering");
        ct_lane_enter(ct_self->lane, frame->depth, id, frame->start);
        CT_TEST_POINT("record.entered");
    } else {
        frame->producer = &ct_unlaned;
        frame->start = ct_now();
        CT_TEST_POINT("record.unlaned");
    }
}

/* Whether the decoder is wanted even when nothing is recorded; in a capture, every call may become a node. */
static bool always_decoded(const struct ct_row *row)
{
    return row->flags & CT_ROW_ALWAYS || (row->decode && ct_capturing());
}

/* `real` is NULL when there is no such function. */
static struct ct_target enter(struct ct_frame *frame, const struct ct_row *row, void *real)
{
    struct ct_target target = { real, CT_MODE_STRAIGHT };
    frame->producer = NULL;
    if (!real) {
        target.function = ct_functions_fallback(frame->row);
        if (!target.function)
            target.function = missing_function(row);
        return target;
    }
    begin(frame, row);
    if (frame->producer || always_decoded(row))
        target.mode = row->stack_words;
    return target;
}

struct ct_target ct_enter_slow(struct ct_frame *frame)
{
    const struct quiet quiet = quiet_begin();
    const struct ct_row *row = &ct_rows[frame->row];
    if (!row->real)
        ct_functions_resolve();
    const struct ct_target target = enter(frame, row, row->real);
    quiet_end(quiet);
    return target;
}

struct ct_target ct_enter_careful(struct ct_frame *frame, const void *caller)
{
    const struct quiet quiet = quiet_begin();
    const struct ct_target target = enter(frame, &ct_rows[frame->row], ct_runtime_real(frame->row, caller));
    quiet_end(quiet);
    return target;
}

static void lose_function(struct ct_segment *segment, uint16_t function, uint64_t ticks, uint64_t bytes)
{
    struct ct_function *directory = (struct ct_function *)(void *)((uint8_t *)segment + CT_DIRECTORY_OFFSET);
    struct ct_function *entry = &directory[function];
    atomic_fetch_add_explicit(&entry->lost_ticks, ticks, memory_order_relaxed);
    CT_TEST_POINT("record.lost_ticks");
    atomic_fetch_add_explicit(&entry->lost_bytes, bytes, memory_order_relaxed);
    CT_TEST_POINT("record.lost_bytes");
    atomic_fetch_add_explicit(&entry->lost_calls, 1, memory_order_release);
    CT_TEST_POINT("record.lost_calls");
    ct_segment_note_unsent(segment);
    CT_TEST_POINT("record.loss_noted");
}

static void lose_by_cause(struct ct_loss *loss, uint64_t end)
{
    /* `first` is 0 for an owner that lost nothing yet, see introduce() in thread.c. */
    uint64_t none = 0;
    atomic_compare_exchange_strong_explicit(&loss->first, &none, end, memory_order_relaxed,
                                            memory_order_relaxed);
    CT_TEST_POINT("record.loss_first");
    atomic_store_explicit(&loss->last, end, memory_order_relaxed);
    CT_TEST_POINT("record.loss_last");
    atomic_fetch_add_explicit(&loss->calls, 1, memory_order_release);
    CT_TEST_POINT("record.loss_calls");
}

void ct_record_lose_unlaned(struct ct_segment *segment, uint16_t function, uint64_t start, uint64_t end)
{
    lose_function(segment, function, end - start, 0);
    lose_by_cause(&segment->unlaned, end);
}

void ct_record_lose(struct ct_producer *producer, enum ct_loss_cause cause, uint16_t function, uint64_t start,
                    uint64_t end, uint64_t bytes)
{
    if (producer->epoch != ct_process_epoch())
        return; /* its segment is gone, and says since when calls may be missing */
    lose_function(producer->segment, function, end - start, bytes);
    lose_by_cause(&producer->lane->loss[cause], end);
}

void ct_record_wake(struct ct_producer *producer)
{
    CT_TEST_POINT("record.waking");
    const uint64_t wake = ct_lane_wake(producer->lane);
    const uint32_t flags = atomic_load_explicit(&producer->segment->flags, memory_order_relaxed);
    if (producer->epoch != ct_process_epoch() || flags & CT_SEGMENT_DETACHED) {
        ct_process_detach();
        return;
    }
    ct_selection_follow(producer->segment);
    if (ct_daemon_ring() && producer->position >= wake)
        producer->rung = wake;
    CT_TEST_POINT("record.woken");
}

static void grow(struct ct_producer *producer)
{
    const struct quiet quiet = quiet_begin();
    ct_thread_grow(producer);
    quiet_end(quiet);
    CT_TEST_POINT("record.grown");
}

/* What a record of so many slots needs up to, with the pad that fills the ring's end. */
static uint64_t end_of(const struct ct_producer *producer, uint32_t slots)
{
    const uint64_t capacity = producer->mask + 1, place = producer->position & producer->mask;
    const uint64_t pad = place + slots > capacity ? capacity - place : 0;
    return producer->position + pad + slots;
}

/* How far the ring may be written without asking: for as long as it may become longer, no further than to the
 * next place where it can. */
static uint64_t limit_of(const struct ct_producer *producer, uint64_t tail, uint64_t wanted)
{
    const uint64_t capacity = producer->mask + 1, limit = tail + capacity;
    const uint64_t growth = ct_lane_growth(wanted, capacity);
    return capacity < ct_segment_ring_slots() && limit > growth ? growth : limit;
}

void ct_record_begin_lane(struct ct_producer *producer)
{
    const uint64_t position = producer->position, tail = ct_lane_tail(producer->lane);
    if (tail <= position && position - tail <= producer->mask + 1)
        producer->limit = limit_of(producer, tail, position);
}

/* A ring grows whenever it may, while there is memory; one that does not goes round in what it has. */
bool ct_record_room(struct ct_producer *producer, uint32_t slots)
{
    if (end_of(producer, slots) <= producer->limit)
        return true;
    const uint64_t position = producer->position, tail = ct_lane_tail(producer->lane);
    if (tail > position || position - tail > producer->mask + 1)
        return false; /* not what a collector writes */
    if (producer->mask + 1 < ct_segment_ring_slots() && ct_lane_may_grow(tail, position, producer->mask + 1))
        grow(producer);
    const uint64_t wanted = end_of(producer, slots);
    producer->limit = limit_of(producer, tail, wanted);
    return wanted <= producer->limit;
}

void ct_record_write(struct ct_producer *producer, const struct ct_record *record, const void *payload,
                     size_t payload_bytes)
{
    const uint64_t ring_slots = producer->mask + 1;
    const uint64_t place = producer->position & producer->mask;
    if (place + record->slots > ring_slots) {
        const uint64_t pad = ring_slots - place;
        const struct ct_record filler = { .end = record->end, .kind = CT_KIND_PAD, .slots = (uint8_t)pad };
        memcpy(producer->ring + place * CT_SLOT_BYTES, &filler, sizeof(filler));
        producer->position += pad;
        CT_TEST_POINT("record.padded");
    }
    uint8_t *slot = producer->ring + (producer->position & producer->mask) * CT_SLOT_BYTES;
    memcpy(slot, record, sizeof(*record));
    CT_TEST_POINT("record.half_written");
    if (payload_bytes > 0)
        memcpy(slot + CT_SLOT_BYTES, payload, payload_bytes);
    producer->position += record->slots;
    CT_TEST_POINT("record.written");
    ct_lane_publish(producer->lane, producer->position);
    CT_TEST_POINT("record.published");
}

/* Writes a record, or counts it with its bytes when there is no room. The caller holds the lane and has
 * announced; either way that is taken back. */
static bool write_or_lose(struct ct_producer *self, const struct ct_record *record, const void *payload,
                          size_t payload_bytes, uint64_t bytes)
{
    if (ct_record_room(self, record->slots)) {
        ct_record_write(self, record, payload, payload_bytes);
        return true;
    }
    const bool no_memory = self->mask + 1 < ct_segment_ring_slots();
    ct_record_lose(self, no_memory ? CT_LOSS_MEMORY : CT_LOSS_FULL, record->function,
                   record->end - ct_span_ticks(record->span), record->end, bytes);
    CT_TEST_POINT("record.lost");
    ct_lane_publish(self->lane, self->position);
    return false;
}

/* ---- lanes that were left ---- */

/* A handler's calls stand below what it interrupted, unless it runs on a stack of its own. */
bool ct_record_left(uintptr_t holder, uintptr_t place)
{
    stack_t stack;
    if (place < holder || !ct_system_begin())
        return false;
    const bool left = sigaltstack(NULL, &stack) == 0 && !(stack.ss_flags & SS_ONSTACK);
    ct_system_end();
    return left;
}

/* Whether the record that holds the lane will never be finished, since a signal handler left it by
 * siglongjmp, or its thread was cancelled there: a call at `place`, with `depth` open calls and ranges around
 * it, finds out. Whoever writes a record is a call around it, or an act, for as long as anything is left to
 * be written but `idle`; so where there is neither, the lane may be taken. What was left while another call
 * went on around it is found when that one returns. */
static bool is_left(const struct ct_producer *self, uint32_t depth, uintptr_t place)
{
    if (depth >= CT_OPEN_MAX)
        return false;
    for (uint32_t i = 0; i < depth; i++) {
        if ((intptr_t)self->frames[i] > 0) /* no range's */
            return false;
    }
    return ct_record_left(self->act, place);
}

uint64_t ct_record_published(const struct ct_producer *self)
{
    enum { MOST = 2 * CT_SLOTS_MAX }; /* a pad, and a record */
    const uint64_t published = ct_lane_position(self->lane);
    return published + MOST - self->position <= 2 * MOST ? published : self->position;
}

/* The record in the making was not published, or is complete: it goes on from there. A kernel that was being
 * remembered may be half another one. */
void ct_record_take_over(struct ct_producer *self)
{
    self->position = ct_record_published(self);
    ct_lane_publish(self->lane, self->position);
    memset(self->kernels, 0, sizeof(self->kernels));
    self->act = 0;
    atomic_signal_fence(memory_order_seq_cst);
    self->idle = 1;
}

/* ---- acts without a trampoline ---- */

void ct_record_act(struct ct_producer *self, const struct ct_act *act)
{
    const uint16_t function = atomic_load_explicit(&ct_rows[act->row].id, memory_order_relaxed);
    const bool left_out = atomic_load_explicit(&ct_rows[act->row].left_out, memory_order_relaxed);
    if (self != &ct_unlaned && CT_UNLIKELY(!self->idle) &&
        is_left(self, ct_depth_around(self, act->place), act->place))
        ct_record_take_over(self);
    if (self == &ct_unlaned || left_out || !self->idle || !function) {
        struct ct_segment *segment = self == &ct_unlaned ? ct_process_current() : self->segment;
        const uint64_t end = ct_now(), start = act->start ? act->start : end;
        if (segment && function && left_out) {
            ct_selection_count(segment, function, end - start, 0);
            ct_selection_follow(segment);
        } else if (segment && self == &ct_unlaned) {
            ct_record_lose_unlaned(segment, function, start, end);
        } else if (segment) {
            ct_record_lose(self, self->idle ? CT_LOSS_MEMORY : CT_LOSS_SIGNAL, function, start, end, 0);
        }
        return;
    }
    self->act = act->place;
    atomic_signal_fence(memory_order_seq_cst);
    self->idle = 0;
    atomic_signal_fence(memory_order_seq_cst);
    ct_lane_announce(self->lane, self->position);
    const uint64_t end = ct_now();
    CT_TEST_POINT("record.act_begun");
    const uint64_t ticks = act->start ? end - act->start : 0;
    const struct ct_record record = {
        .end = end,
        .span = ct_span(ticks, act->depth, 0),
        .function = function,
        .kind = act->kind,
        .slots = (uint8_t)(1 + (act->payload_bytes + CT_SLOT_BYTES - 1) / CT_SLOT_BYTES),
        .value = act->value,
    };
    const bool room = write_or_lose(self, &record, act->payload, act->payload_bytes, 0);
    CT_TEST_POINT("record.act_written");
    atomic_signal_fence(memory_order_seq_cst);
    self->idle = 1;
    atomic_signal_fence(memory_order_seq_cst);
    self->act = 0;
    if (!room || ct_wants_doorbell(self, self->lane, self->position))
        ct_record_wake(self);
}

struct ct_producer *ct_record_begin(uint32_t row, uint16_t *function)
{
    *function = atomic_load_explicit(&ct_rows[row].id, memory_order_acquire);
    if (CT_LIKELY(ct_self->lane && *function))
        return ct_self;
    const struct quiet quiet = quiet_begin();
    struct ct_producer *producer = NULL;
    if (ct_thread_attach(0))
        producer = ct_self;
    else if (ct_process_current())
        producer = &ct_unlaned;
    /* Attaching may have begun a segment, which numbers anew. */
    *function = producer ? atomic_load_explicit(&ct_rows[row].id, memory_order_acquire) : 0;
    if (producer && !*function)
        *function = ct_segment_define(row);
    quiet_end(quiet);
    return producer;
}

/* Decoders that learn or hand out may do anything; what the others do besides reading is under the lock, or
 * quiet by itself. The calls that are made most are those of the others, and switching cancellation off and
 * on is two locked instructions, which wait for the stores of a launch to reach the device. */
static struct ct_decoded decoded_call(const struct ct_frame *frame, const struct ct_row *row)
{
    struct ct_decoded decoded = { .kind = CT_KIND_CALL, .status = (int32_t)frame->result };
    if (row->flags & CT_ROW_ALWAYS) {
        const struct quiet quiet = quiet_begin();
        row->decode(frame, &decoded);
        quiet_end(quiet);
    } else if (row->decode) {
        row->decode(frame, &decoded);
    }
    return decoded;
}

/* The call's end without a record: nothing recorded, or a lane that is gone. */
static void leave_unrecorded(const struct ct_frame *frame)
{
    if (always_decoded(&ct_rows[frame->row]))
        decoded_call(frame, &ct_rows[frame->row]);
}

/* Bytes that a call moved, set, allocated or asked for, as `totals` counts them: of calls that succeeded. */
static uint64_t bytes_of(const struct ct_decoded *decoded)
{
    const bool plain = decoded->kind == CT_KIND_CALL || decoded->kind == CT_KIND_OBJECTS;
    const bool has_bytes = decoded->kind == CT_KIND_TRANSFER ||
                           (decoded->kind == CT_KIND_ALLOC && !(decoded->flags & CT_FLAG_FREE)) ||
                           (plain && decoded->flags & CT_FLAG_BYTES);
    return decoded->status == 0 && has_bytes ? decoded->value : 0;
}

/* A call to be counted and not recorded. Its lane is not written but for the open calls, so that this may
 * happen in a signal handler that interrupted a record. */
static bool leave_left_out(struct ct_frame *frame, uint16_t id)
{
    struct ct_producer *self = frame->producer;
    const struct ct_row *row = &ct_rows[frame->row];
    if (!id || !ct_selection_leaves_out(self, frame))
        return false;
    const uint64_t end = ct_now();
    frame->producer = NULL; /* names are not sent for it */
    CT_TEST_POINT("record.skipping");
    const struct ct_decoded decoded = decoded_call(frame, row);
    ct_selection_count(self->segment, id, end - frame->start, bytes_of(&decoded));
    ct_lane_leave(self->lane, frame->depth);
    CT_TEST_POINT("record.skipped");
    self->depth = frame->depth;
    self->trees += ct_outermost(self, frame->depth);
    ct_selection_follow(self->segment);
    return true;
}

void ct_leave_slow(struct ct_frame *frame)
{
    const struct ct_row *row = &ct_rows[frame->row];
    const uint16_t id = atomic_load_explicit(&row->id, memory_order_relaxed);
    struct ct_producer *self = frame->producer;
    CT_TEST_POINT("record.returned");
    if (self == &ct_unlaned) {
        struct ct_segment *segment = ct_process_current();
        if (segment && atomic_load_explicit(&row->left_out, memory_order_relaxed))
            ct_selection_count(segment, id, ct_now() - frame->start, 0);
        else if (segment)
            ct_record_lose_unlaned(segment, id, frame->start, ct_now());
    }
    if (!self || self != ct_self || !self->lane) {
        leave_unrecorded(frame);
        return;
    }
    struct ct_lane *lane = self->lane;
    if (leave_left_out(frame, id))
        return;
    if (CT_UNLIKELY(!self->idle) && is_left(self, frame->depth, self->frames[frame->depth % CT_OPEN_MAX]))
        ct_record_take_over(self);
    if (!self->idle || !id) {
        /* A signal handler's call, made while its thread was writing a record; or no room in the directory.
         */
        ct_record_lose(self, self->idle ? CT_LOSS_MEMORY : CT_LOSS_SIGNAL, id, frame->start, ct_now(), 0);
        frame->producer = NULL; /* names are not sent in the middle of that record */
        leave_unrecorded(frame);
        self->depth = frame->depth;
        ct_lane_leave(lane, frame->depth);
        return;
    }
    self->idle = 0;
    atomic_signal_fence(memory_order_seq_cst);

    ct_lane_announce(lane, self->position);
    CT_TEST_POINT("record.announced");
    const uint64_t end = ct_now();
    const struct ct_decoded decoded = decoded_call(frame, row);
    CT_TEST_POINT("record.decoded");
    const struct ct_record record = {
        .end = end,
        .span = ct_span(end - frame->start, frame->depth, decoded.flags),
        .function = id,
        .kind = decoded.kind,
        .slots = (uint8_t)(1 + decoded.payload_slots),
        .status = decoded.status,
        .value = decoded.value,
    };
    const bool room = write_or_lose(self, &record, &decoded.payload,
                                    (size_t)decoded.payload_slots * CT_SLOT_BYTES, bytes_of(&decoded));
    CT_TEST_POINT("record.leaving");
    ct_lane_leave(lane, frame->depth);
    CT_TEST_POINT("record.left");
    self->trees += ct_outermost(self, frame->depth);
    atomic_signal_fence(memory_order_seq_cst); /* see ct_record_take_over() */
    self->depth = frame->depth;
    atomic_signal_fence(memory_order_seq_cst);
    self->idle = 1;
    if (!room || ct_wants_doorbell(self, lane, self->position))
        ct_record_wake(self);
}

void ct_call_begin(struct ct_frame *frame)
{
    const struct quiet quiet = quiet_begin();
    frame->producer = NULL;
    frame->stack_args = (const uint64_t *)(const void *)(frame + 1);
    begin(frame, &ct_rows[frame->row]);
    quiet_end(quiet);
}

void ct_call_end(struct ct_frame *frame)
{
    const struct quiet quiet = quiet_begin();
    ct_leave_slow(frame);
    quiet_end(quiet);
}
