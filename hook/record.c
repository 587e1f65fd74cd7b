/* Writing records, the long way: calls with decoded arguments, clocks that are a function, full rings, loss.
 * Called by entry.c for whatever its short way does not cover. */
#include "hook.h"

#include <errno.h>
#include <string.h>

struct ct_target ct_enter_slow(struct ct_frame *frame);
void ct_leave_slow(struct ct_frame *frame);

/* What a stub answers when the driver has no such function: with the hook away, the program would not have
 * been linked at all. CUDA_ERROR_NOT_FOUND. */
static ct_status missing_function(void) { return 500; }

struct ct_target ct_enter_slow(struct ct_frame *frame)
{
    const int saved_errno = errno;
    struct ct_row *row = &ct_rows[frame->row];
    struct ct_target target = { row->real, CT_MODE_STRAIGHT };
    frame->producer = NULL;

    if (!row->real && (!ct_functions_resolve() || !row->real)) {
        target.function = (void *)(uintptr_t)missing_function;
    } else {
        target.function = row->real;
        if (ct_thread_attach()) {
            struct ct_producer *self = ct_self;
            const uint16_t id = row->id ? row->id : ct_process_define(frame->row);
            frame->producer = self;
            frame->depth = self->depth;
            while (frame->depth > 0 && frame->depth <= CT_OPEN_MAX &&
                   self->frames[frame->depth - 1] < (uintptr_t)frame)
                frame->depth--;
            if (frame->depth < CT_OPEN_MAX)
                self->frames[frame->depth] = (uintptr_t)frame;
            self->depth = frame->depth + 1;
            frame->start = ct_now();
            ct_lane_enter(self->lane, frame->depth, id, frame->start);
        }
        if (frame->producer || row->flags & CT_ROW_ALWAYS)
            target.mode = row->stack_words;
    }
    errno = saved_errno;
    return target;
}

void ct_record_lose(struct ct_producer *producer, enum ct_loss_cause cause, uint16_t function, uint64_t start,
                    uint64_t end, uint64_t bytes)
{
    struct ct_function *directory =
        (struct ct_function *)(void *)((uint8_t *)producer->segment + CT_DIRECTORY_OFFSET);
    struct ct_function *entry = &directory[function];
    atomic_fetch_add_explicit(&entry->lost_ticks, end - start, memory_order_relaxed);
    atomic_fetch_add_explicit(&entry->lost_bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&entry->lost_calls, 1, memory_order_release);

    struct ct_loss *loss = &producer->lane->loss[cause];
    const uint64_t calls = atomic_load_explicit(&loss->calls, memory_order_relaxed);
    if (calls == 0)
        atomic_store_explicit(&loss->first, end, memory_order_relaxed);
    atomic_store_explicit(&loss->last, end, memory_order_relaxed);
    atomic_fetch_add_explicit(&loss->calls, 1, memory_order_release);
}

void ct_record_wake(struct ct_producer *producer)
{
    const uint32_t flags = atomic_load_explicit(&producer->segment->flags, memory_order_relaxed);
    if (flags & CT_SEGMENT_DETACHED) {
        ct_process_detach();
        return;
    }
    ct_process_ring_doorbell();
}

/* Gives the ring its next piece of memory, or refuses for a second. */
static bool grow(struct ct_producer *producer)
{
    const uint64_t now = ct_now();
    if (now < producer->retry)
        return false;
    const uint64_t slots = producer->allocated_slots + CT_CHUNK_BYTES / CT_SLOT_BYTES;
    if (ct_process_grow_ring(producer->index, slots * CT_SLOT_BYTES) != 0) {
        /* About a second: counters run at 1 to 5 GHz, or at 1 for a clock in nanoseconds. */
        producer->retry = now + UINT64_C(2000000000);
        return false;
    }
    producer->allocated_slots = slots;
    return true;
}

bool ct_record_room(struct ct_producer *producer, uint32_t slots)
{
    const uint64_t ring_slots = producer->mask + 1;
    const uint64_t place = producer->position & producer->mask;
    const uint64_t pad = place + slots > ring_slots ? ring_slots - place : 0;
    const uint64_t wanted = producer->position + pad + slots;
    if (wanted <= producer->limit)
        return true;

    while (producer->allocated_slots < ring_slots && wanted > producer->allocated_slots) {
        if (!grow(producer))
            return false;
    }
    const uint64_t tail = ct_lane_tail(producer->lane);
    if (tail > producer->position || producer->position - tail > ring_slots)
        return false; /* not what a collector writes */
    producer->limit = tail + ring_slots;
    if (producer->allocated_slots < ring_slots && producer->limit > producer->allocated_slots)
        producer->limit = producer->allocated_slots;
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
    }
    uint8_t *slot = producer->ring + (producer->position & producer->mask) * CT_SLOT_BYTES;
    memcpy(slot, record, sizeof(*record));
    if (payload_bytes > 0)
        memcpy(slot + CT_SLOT_BYTES, payload, payload_bytes);
    producer->position += record->slots;
    ct_lane_publish(producer->lane, producer->position);
}

/* The call's end without a record: nothing recorded, or a lane that is gone. */
static void leave_unrecorded(const struct ct_frame *frame)
{
    ct_decoder *decode = ct_rows[frame->row].decode;
    if (decode && ct_rows[frame->row].flags & CT_ROW_ALWAYS) {
        struct ct_decoded decoded = { .kind = CT_KIND_CALL };
        decode(frame, &decoded);
    }
}

void ct_leave_slow(struct ct_frame *frame)
{
    const int saved_errno = errno;
    const struct ct_row *row = &ct_rows[frame->row];
    struct ct_producer *self = frame->producer;
    if (!self || self != ct_self || !self->lane) {
        leave_unrecorded(frame);
        errno = saved_errno;
        return;
    }
    struct ct_lane *lane = self->lane;
    if (!self->idle || !row->id) {
        /* A signal handler's call, made while its thread was writing a record; or no room in the directory. */
        ct_record_lose(self, self->idle ? CT_LOSS_MEMORY : CT_LOSS_SIGNAL, row->id, frame->start, ct_now(), 0);
        leave_unrecorded(frame);
        self->depth = frame->depth;
        ct_lane_leave(lane, frame->depth);
        errno = saved_errno;
        return;
    }
    self->idle = 0;
    atomic_signal_fence(memory_order_seq_cst);

    ct_lane_announce(lane, self->position);
    const uint64_t end = ct_now();
    struct ct_decoded decoded = { .kind = CT_KIND_CALL };
    if (row->decode)
        row->decode(frame, &decoded);
    const struct ct_record record = {
        .end = end,
        .span = ct_span(end - frame->start, frame->depth, decoded.flags),
        .function = row->id,
        .kind = decoded.kind,
        .slots = (uint8_t)(1 + decoded.payload_slots),
        .status = (int32_t)frame->result,
        .value = decoded.value,
    };
    const bool room = ct_record_room(self, record.slots);
    if (room) {
        ct_record_write(self, &record, &decoded.payload, (size_t)decoded.payload_slots * CT_SLOT_BYTES);
    } else {
        const bool has_bytes = record.status == 0 && (decoded.kind == CT_KIND_TRANSFER || decoded.kind == CT_KIND_ALLOC ||
                               (decoded.kind == CT_KIND_CALL && decoded.flags & CT_FLAG_BYTES));
        const bool no_memory = self->allocated_slots <= self->mask && self->position >= self->allocated_slots;
        ct_record_lose(self, no_memory ? CT_LOSS_MEMORY : CT_LOSS_FULL, row->id, frame->start, end,
                       has_bytes ? decoded.value : 0);
        ct_lane_publish(lane, self->position); /* takes the announcement back */
    }
    ct_lane_leave(lane, frame->depth);
    self->depth = frame->depth;
    atomic_signal_fence(memory_order_seq_cst);
    self->idle = 1;
    if (!room || ct_lane_wants_doorbell(lane, self->position))
        ct_record_wake(self);
    errno = saved_errno;
}
