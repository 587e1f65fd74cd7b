#include "correlation.h"

#include "current.h"
#include "ring.h"

static uint64_t start_of(const struct ct_producer *self, uint32_t depth)
{
    return atomic_load_explicit(&self->lane->open[depth].start, memory_order_relaxed);
}

uint32_t ct_correlation_note(uint64_t correlation)
{
    struct ct_producer *self = ct_self;
    const uint32_t depth = self->depth - 1;
    /* A signal handler may have interrupted a record. The handler's calls are counted, but not recorded. */
    if (!self->lane || !self->idle || depth >= CT_OPEN_MAX)
        return 0;
    const uint32_t function = atomic_load_explicit(&self->lane->open[depth].function, memory_order_relaxed);
    if (!correlation)
        return function;
    self->noted = 0;
    atomic_signal_fence(memory_order_seq_cst);
    self->correlation = correlation;
    self->noted_depth = depth;
    self->noted_start = start_of(self, depth);
    atomic_signal_fence(memory_order_seq_cst);
    self->noted = 1;
    return function;
}

void ct_correlation_write(struct ct_producer *self, uint32_t depth)
{
    if (depth > self->noted_depth) /* the noted call is still open */
        return;
    self->noted = 0;
    if (depth < self->noted_depth || start_of(self, depth) != self->noted_start) /* it was not recorded */
        return;
    struct ct_record record = { .end = ct_now(), .kind = CT_KIND_CORRELATION, .value = self->correlation };
    ct_record_measure(&record, 0);
    if (!ct_record_room(self, record.slots))
        return;
    ct_lane_announce(self->lane, self->position);
    ct_record_write(self, &record, NULL, 0);
}
