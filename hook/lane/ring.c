#include "ring.h"

#include "loss.h"
#include "reserve.h"
#include "ring_resize.h"
#include "stack.h"
#include "test_point.h"

#include <string.h>

void ct_record_begin_lane(struct ct_producer *producer)
{
    producer->limit = producer->reserve = 0; /* the first record calls ct_ring_make_room() */
    producer->full_tail = UINT64_MAX;
    ct_reserve_begin(producer);
}

bool ct_record_room_for_all(struct ct_producer *producer, uint32_t slots)
{
    const uint64_t wanted = ct_ring_record_end(producer, slots);
    return wanted <= producer->limit ||
           (!ct_record_is_still_full(producer, wanted) && ct_ring_make_room(producer, slots));
}

bool ct_record_reserve(struct ct_producer *producer, uint32_t slots)
{
    return ct_ring_record_end(producer, slots) <= producer->reserve || ct_ring_use_reserve(producer, slots);
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
        const uint32_t filler = ct_head(0, CT_KIND_PAD, (uint32_t)pad);
        memcpy(producer->ring + place * CT_SLOT_BYTES, &filler, sizeof(filler));
        producer->position += pad;
        CT_TEST_POINT("ring.padded");
    }
    uint8_t *slot = producer->ring + (producer->position & producer->mask) * CT_SLOT_BYTES;
    ct_ring_prefetch(slot);
    ct_record_put(slot, record);
    CT_TEST_POINT("ring.half_written");
    if (payload_bytes > 0)
        memcpy(slot + sizeof(*record), payload, payload_bytes);
    producer->position += record->slots;
    CT_TEST_POINT("ring.written");
    ct_lane_publish(producer->lane, producer->position);
    CT_TEST_POINT("ring.published");
}

/* ---- holding the lane ---- */

void ct_record_hold(struct ct_producer *self, uintptr_t frame)
{
    self->event = frame;
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
    self->event = 0;
}

/* A record stays unfinished if a signal handler calls siglongjmp() while the record is being written, or if
 * the thread is cancelled. The next call detects such a record. That call is at `frame`, with `depth` open
 * calls and ranges around it. A record's writer counts as an open call or manual event until only `idle`
 * remains to be written. The lane may therefore be taken over if no call is open and there is no manual
 * event. If another call around the abandoned record is still open, the record is detected when that call
 * returns. */
bool ct_record_is_left(const struct ct_producer *self, uint32_t depth, uintptr_t frame)
{
    if (depth >= CT_OPEN_MAX)
        return false;
    for (uint32_t i = 0; i < depth; i++) {
        if ((intptr_t)self->frames[i] > 0) /* not a range */
            return false;
    }
    return ct_stack_left(self->event ? self->event : self->writer, frame);
}

uint64_t ct_record_published(const struct ct_producer *self)
{
    enum { MOST = 2 * CT_SLOTS_MAX }; /* a pad and a record */
    const uint64_t published = ct_lane_position(self->lane);
    return published + MOST - self->position <= 2 * MOST ? published : self->position;
}

/* Continues at the published position, since an unpublished record may be incomplete. Clears `kernels`, since
 * an entry may be half-written. */
void ct_record_take_over(struct ct_producer *self)
{
    self->position = ct_record_published(self);
    ct_lane_publish(self->lane, self->position);
    memset(self->kernels, 0, sizeof(self->kernels));
    self->event = self->writer = 0;
    atomic_signal_fence(memory_order_seq_cst);
    self->idle = 1;
}
