/* Writing records, the long way: calls with decoded arguments, clocks that are a function, full rings, loss.
 * Called by entry.c for whatever its short way does not cover. */
#include "decoders.h"

#include <errno.h>
#include <pthread.h>
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

/* What the hook does on the slow ways opens files: it must not make CUDA calls points of cancellation, nor be
 * cancelled while it holds the process's lock. */
struct quiet {
    int saved_errno, cancel_state;
};

static struct quiet quiet_begin(void)
{
    struct quiet quiet = { .saved_errno = errno };
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &quiet.cancel_state);
    return quiet;
}

static void quiet_end(struct quiet quiet)
{
    pthread_setcancelstate(quiet.cancel_state, NULL);
    errno = quiet.saved_errno;
}

/* Begins the record of a call, if there is somewhere to write it. */
static void begin(struct ct_frame *frame, const struct ct_row *row)
{
    const bool attached = ct_thread_attach();
    if (!attached && !ct_process_current())
        return;
    uint16_t id = atomic_load_explicit(&row->id, memory_order_acquire);
    if (!id)
        id = ct_process_define(frame->row);
    if (attached) {
        const uint32_t depth = ct_depth_enter(ct_self, frame);
        frame->start = ct_now();
        ct_lane_enter(ct_self->lane, depth, id, frame->start);
    } else {
        frame->producer = &ct_unlaned;
        frame->start = ct_now();
    }
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
    if (frame->producer || row->flags & CT_ROW_ALWAYS)
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
    atomic_fetch_add_explicit(&entry->lost_bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&entry->lost_calls, 1, memory_order_release);
}

static void lose_by_cause(struct ct_loss *loss, uint64_t end)
{
    /* `first` is 0 for an owner that lost nothing yet, see introduce() in thread.c. */
    uint64_t none = 0;
    atomic_compare_exchange_strong_explicit(&loss->first, &none, end, memory_order_relaxed,
                                            memory_order_relaxed);
    atomic_store_explicit(&loss->last, end, memory_order_relaxed);
    atomic_fetch_add_explicit(&loss->calls, 1, memory_order_release);
}

void ct_record_lose_unlaned(struct ct_segment *segment, uint16_t function, uint64_t start, uint64_t end)
{
    lose_function(segment, function, end - start, 0);
    lose_by_cause(&segment->unlaned, end);
}

void ct_record_lose(struct ct_producer *producer, enum ct_loss_cause cause, uint16_t function, uint64_t start,
                    uint64_t end, uint64_t bytes)
{
    lose_function(producer->segment, function, end - start, bytes);
    lose_by_cause(&producer->lane->loss[cause], end);
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
    if (producer->epoch != ct_process_epoch() || !ct_process_may_allocate())
        return false;
    const uint64_t slots = producer->allocated_slots + CT_CHUNK_BYTES / CT_SLOT_BYTES;
    if (ct_process_grow_ring(producer->index, slots * CT_SLOT_BYTES) != 0)
        return false;
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
        struct ct_decoded decoded = { .kind = CT_KIND_CALL, .status = (int32_t)frame->result };
        decode(frame, &decoded);
    }
}

static void leave(struct ct_frame *frame)
{
    const struct ct_row *row = &ct_rows[frame->row];
    const uint16_t id = atomic_load_explicit(&row->id, memory_order_relaxed);
    struct ct_producer *self = frame->producer;
    if (self == &ct_unlaned) {
        struct ct_segment *segment = ct_process_current();
        if (segment)
            ct_record_lose_unlaned(segment, id, frame->start, ct_now());
    }
    if (!self || self != ct_self || !self->lane) {
        leave_unrecorded(frame);
        return;
    }
    struct ct_lane *lane = self->lane;
    if (!self->idle || !id) {
        /* A signal handler's call, made while its thread was writing a record; or no room in the directory.
         */
        ct_record_lose(self, self->idle ? CT_LOSS_MEMORY : CT_LOSS_SIGNAL, id, frame->start, ct_now(), 0);
        leave_unrecorded(frame);
        self->depth = frame->depth;
        ct_lane_leave(lane, frame->depth);
        return;
    }
    self->idle = 0;
    atomic_signal_fence(memory_order_seq_cst);

    ct_lane_announce(lane, self->position);
    const uint64_t end = ct_now();
    struct ct_decoded decoded = { .kind = CT_KIND_CALL, .status = (int32_t)frame->result };
    if (row->decode)
        row->decode(frame, &decoded);
    const struct ct_record record = {
        .end = end,
        .span = ct_span(end - frame->start, frame->depth, decoded.flags),
        .function = id,
        .kind = decoded.kind,
        .slots = (uint8_t)(1 + decoded.payload_slots),
        .status = decoded.status,
        .value = decoded.value,
    };
    const bool room = ct_record_room(self, record.slots);
    if (room) {
        ct_record_write(self, &record, &decoded.payload, (size_t)decoded.payload_slots * CT_SLOT_BYTES);
    } else {
        const bool has_bytes =
            record.status == 0 && (decoded.kind == CT_KIND_TRANSFER ||
                                   (decoded.kind == CT_KIND_ALLOC && !(decoded.flags & CT_FLAG_FREE)) ||
                                   ((decoded.kind == CT_KIND_CALL || decoded.kind == CT_KIND_OBJECTS) &&
                                    decoded.flags & CT_FLAG_BYTES));
        const bool no_memory = self->allocated_slots <= self->mask && self->position >= self->allocated_slots;
        ct_record_lose(self, no_memory ? CT_LOSS_MEMORY : CT_LOSS_FULL, id, frame->start, end,
                       has_bytes ? decoded.value : 0);
        ct_lane_publish(lane, self->position); /* takes the announcement back */
    }
    ct_lane_leave(lane, frame->depth);
    self->depth = frame->depth;
    atomic_signal_fence(memory_order_seq_cst);
    self->idle = 1;
    if (!room || ct_lane_wants_doorbell(lane, self->position))
        ct_record_wake(self);
}

void ct_leave_slow(struct ct_frame *frame)
{
    const struct quiet quiet = quiet_begin();
    leave(frame);
    quiet_end(quiet);
}
