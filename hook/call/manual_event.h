/* Manual events are records written without a trampoline, such as ranges. */
#ifndef CT_MANUAL_EVENT_H
#define CT_MANUAL_EVENT_H

#include "producer.h"

struct ct_manual_event {
    uintptr_t frame; /* stack address of the call that the application made */
    uint64_t start;  /* ticks; 0: now */
    uint32_t row;    /* a row that ct_manual_event_begin() has defined */
    uint32_t depth;
    uint8_t kind; /* enum ct_kind */
    uint64_t value;
    const void *payload;
    size_t payload_bytes;
};
/* Returns the producer for one of the calling thread's manual events, after taking a lane if necessary.
 * Returns &ct_unlaned if the event can only be counted, and NULL if nothing is recorded. Sets *function to
 * the row's function number. */
struct ct_producer *ct_manual_event_begin(uint32_t row, uint16_t *function);
/* Writes the record of a manual event that ends now, or only counts the event if it cannot be recorded. */
void ct_manual_event_record(struct ct_producer *producer, const struct ct_manual_event *event);
/* Counts a manual event as lost, because it could not be kept. */
void ct_manual_event_lose(uint32_t row, enum ct_loss_cause cause);

#endif
