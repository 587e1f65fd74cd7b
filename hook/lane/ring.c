#include "ring.h"

#include "long_call.h"
#include "loss.h"
#include "segment_file.h"
#include "slot.h"
#include "stack.h"
#include "test_point.h"

#include <string.h>

/* The end of a record of so many slots, with the pad that fills the ring's end. */
static uint64_t end_of(const struct ct_producer *producer, uint32_t slots)
{
    const uint64_t capacity = producer->mask + 1, place = producer->position & producer->mask;
    const uint64_t pad = place + slots > capacity ? capacity - place : 0;
    return producer->position + pad + slots;
}

/* The position up to which the ring may be written without asking: as long as it may grow, the
 * next place where it can; before its last quarter, which is for what says more. */
static uint64_t limit_of(const struct ct_producer *producer, uint64_t tail, uint64_t wanted)
{
    const uint64_t capacity = producer->mask + 1, end = tail + capacity;
    const uint64_t growth = ct_lane_growth(wanted, capacity);
    /* Up to where it grows a ring needs no reserve, and the later it asks for more the better. */
    return capacity < ct_segment_ring_slots() && growth <= end ? growth : end - capacity / 4;
}

void ct_record_begin_lane(struct ct_producer *producer)
{
    const uint64_t position = producer->position, tail = ct_lane_tail(producer->lane);
    if (tail <= position && position - tail <= producer->mask + 1)
        producer->limit = limit_of(producer, tail, position);
    producer->full_tail = UINT64_MAX;
}

/* A ring grows whenever it may, while there is memory; one that does not goes round in what it has. */
bool ct_record_room_for_all(struct ct_producer *producer, uint32_t slots)
{
    if (end_of(producer, slots) <= producer->limit)
        return true;
    const uint64_t position = producer->position, tail = ct_lane_tail(producer->lane);
    if (tail > position || position - tail > producer->mask + 1)
        return false; /* not what a collector writes */
    if (producer->mask + 1 < ct_segment_ring_slots() && ct_lane_may_grow(tail, position, producer->mask + 1))
        ct_slot_grow(producer);
    const uint64_t wanted = end_of(producer, slots);
    producer->limit = limit_of(producer, tail, wanted);
    const bool room = wanted <= producer->limit;
    producer->full_tail = room ? UINT64_MAX : tail;
    producer->full_cause = producer->mask + 1 < ct_segment_ring_slots() ? CT_LOSS_MEMORY : CT_LOSS_FULL;
    if (!room)
        producer->long_ticks = ct_long_ticks();
    return room;
}

bool ct_record_reserve(const struct ct_producer *producer, uint32_t slots)
{
    return producer->full_tail != UINT64_MAX &&
           end_of(producer, slots) - producer->full_tail <= producer->mask + 1;
}

bool ct_record_room(struct ct_producer *producer, uint32_t slots)
{
    return ct_record_room_for_all(producer, slots) || ct_record_reserve(producer, slots);
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
        CT_TEST_POINT("ring.padded");
    }
    uint8_t *slot = producer->ring + (producer->position & producer->mask) * CT_SLOT_BYTES;
    memcpy(slot, record, sizeof(*record));
    CT_TEST_POINT("ring.half_written");
    if (payload_bytes > 0)
        memcpy(slot + CT_SLOT_BYTES, payload, payload_bytes);
    producer->position += record->slots;
    CT_TEST_POINT("ring.written");
    ct_lane_publish(producer->lane, producer->position);
    CT_TEST_POINT("ring.published");
}

/* ---- holding the lane ---- */

void ct_record_hold(struct ct_producer *self, uintptr_t frame)
{
    self->act = frame;
    atomic_signal_fence(memory_order_seq_cst);
    self->idle = 0;
    atomic_signal_fence(memory_order_seq_cst);
    ct_lane_announce(self->lane, self->position);
}

void ct_record_release(struct ct_producer *self)
{
    ct_lane_publish(self->lane, self->position);
    atomic_signal_fence(memory_order_seq_cst);
    self->idle = 1;
    atomic_signal_fence(memory_order_seq_cst);
    self->act = 0;
}

/* True if the record that holds the lane will never be finished, since a signal handler left it by
 * siglongjmp, or its thread was cancelled there: a call at `frame`, with `depth` open calls and ranges around
 * it, finds out. Whoever writes a record is a call around it, or an act, for as long as anything is left to
 * be written but `idle`; so where there is neither, the lane may be taken. What was left while another call
 * went on around it is found when that one returns. */
bool ct_record_is_left(const struct ct_producer *self, uint32_t depth, uintptr_t frame)
{
    if (depth >= CT_OPEN_MAX)
        return false;
    for (uint32_t i = 0; i < depth; i++) {
        if ((intptr_t)self->frames[i] > 0) /* no range's */
            return false;
    }
    return ct_stack_left(self->act, frame);
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
