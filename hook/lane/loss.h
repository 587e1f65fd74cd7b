/* Calls that are not in the ring, counted: those that were lost, and those that were to be left out. */
#ifndef CT_LOSS_H
#define CT_LOSS_H

#include "producer.h"

/* `bytes` are those that the call moved. */
void ct_record_lose(struct ct_producer *producer, enum ct_loss_cause cause, uint16_t function, uint64_t start,
                    uint64_t end, uint64_t bytes);
/* The same for a thread without a lane. */
void ct_record_lose_unlaned(struct ct_segment *segment, uint16_t function, uint64_t start, uint64_t end);
/* A call that the selection leaves out. */
void ct_record_skip(struct ct_segment *segment, uint16_t function, uint64_t ticks, uint64_t bytes);

#endif
