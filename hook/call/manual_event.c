#include "manual_event.h"

#include "attach.h"
#include "current.h"
#include "error_guard.h"
#include "loss.h"
#include "process.h"
#include "reserve.h"
#include "ring.h"
#include "row_selection.h"
#include "rows.h"
#include "test_point.h"

struct ct_producer *ct_manual_event_begin(uint32_t row, uint16_t *function)
{
    *function = atomic_load_explicit(&ct_rows[row].id, memory_order_acquire);
    if (CT_LIKELY(ct_self->lane && *function && !ct_producer_is_stale(ct_self)))
        return ct_self;
    CT_ERROR_GUARD;
    struct ct_producer *producer = NULL;
    const enum ct_attached attached = ct_process_attach(0);
    if (attached != CT_ATTACHED_NOT)
        producer = attached == CT_ATTACHED ? ct_self : &ct_unlaned;
    /* ct_process_attach() may have begun a new segment with different function numbers. */
    *function = producer ? atomic_load_explicit(&ct_rows[row].id, memory_order_acquire) : 0;
    if (producer && !*function)
        *function = ct_row_define(row);
    return producer;
}

/* Counts a manual event that is skipped or cannot be recorded. */
static void count(struct ct_producer *self, const struct ct_manual_event *event, uint16_t function,
                  bool skipped, bool idle)
{
    struct ct_segment *segment = self == &ct_unlaned ? ct_process_current() : self->segment;
    const uint64_t end = ct_now(), start = event->start ? event->start : end;
    if (segment && function && skipped) {
        if (idle) {
            ct_record_hold(self, event->frame);
            ct_record_skip_held(self, function, end - start, 0);
            ct_record_release(self);
        } else {
            ct_record_skip(segment, function, end - start, 0);
        }
        ct_selection_follow(segment);
    } else if (segment && self == &ct_unlaned) {
        ct_record_lose_unlaned(segment, function, start, end);
    } else if (segment) {
        ct_record_lose(self, CT_LOSS_MEMORY, function, start, end);
    }
}

void ct_manual_event_record(struct ct_producer *self, const struct ct_manual_event *event)
{
    const uint16_t function = atomic_load_explicit(&ct_rows[event->row].id, memory_order_relaxed);
    const bool skipped = atomic_load_explicit(&ct_rows[event->row].skipped, memory_order_relaxed);
    const bool idle =
        self != &ct_unlaned && ct_record_recover(self, ct_depth_around(self, event->frame), event->frame);
    if (skipped || !idle || !function) {
        count(self, event, function, skipped, idle);
        return;
    }
    ct_record_hold(self, event->frame);
    const uint64_t end = ct_now();
    CT_TEST_POINT("manual_event.begun");
    const uint64_t ticks = event->start ? end - event->start : 0;
    struct ct_record record = {
        .end = end,
        .span = ct_span(ticks, event->depth, 0),
        .function = function,
        .kind = event->kind & CT_KIND_MASK,
        .value = event->value,
    };
    ct_record_measure(&record, event->payload_bytes);
    const bool room = ct_record_room(self, record.slots);
    if (room)
        ct_record_write(self, &record, event->payload, event->payload_bytes);
    else
        ct_record_lose_held(self, self->full_cause, function, end - ticks, end, 0);
    if (!room)
        ct_reserve_note_lost(self, record.slots);
    CT_TEST_POINT("manual_event.written");
    ct_record_release(self);
    if (!room || ct_wants_doorbell(self->lane, self->position))
        ct_attach_apply(self);
}

void ct_manual_event_lose(uint32_t row, enum ct_loss_cause cause)
{
    uint16_t function;
    struct ct_producer *producer = ct_manual_event_begin(row, &function);
    struct ct_segment *segment = ct_process_current();
    if (!producer || !segment)
        return;
    const uint64_t now = ct_now();
    if (producer == &ct_unlaned)
        ct_record_lose_unlaned(segment, function, now, now);
    else
        ct_record_lose(producer, cause, function, now, now);
}
