#include "reserve.h"

#include "record.h"

#include <string.h>

enum {
    LEAST_PART = 4,   /* of a ring */
    PRESSURE_MAX = 6, /* halvings of the share of low-priority calls */
    SAMPLED_MAX = 2,  /* halvings that ct_reserve_sample() may make before any loss */
    SAMPLE_LEAST_SLOTS = 128,
    SAMPLE_MOST_SLOTS = 4096, /* takes some microseconds */
    BURST = 4,                /* length of the expected burst, in rings */
};

static uint64_t share_at(const struct ct_producer *self, uint32_t pressure)
{
    const uint64_t slots = self->mask + 1;
    return (slots - slots / LEAST_PART) >> pressure;
}

static uint64_t reserve_at(const struct ct_producer *self, uint32_t pressure)
{
    return self->mask + 1 - share_at(self, pressure);
}

/* Raises the pressure until the reserve has `slots` slots or the pressure reaches `most`. */
static void enlarge(struct ct_producer *self, uint64_t slots, uint32_t most)
{
    while (self->pressure < most && reserve_at(self, self->pressure) < slots)
        self->pressure++;
}

void ct_reserve_begin(struct ct_producer *self)
{
    self->step = self->position;
    self->lost_slots = 0;
    self->pressure = 0;
    self->is_sampled = false;
}

uint64_t ct_reserve_share(const struct ct_producer *self)
{
    return share_at(self, self->pressure);
}

/* Judges a record only by its kind, so an important call without a payload, such as a synchronisation, counts
 * as low-priority here. */
static bool is_important(uint32_t kind)
{
    return kind != CT_KIND_CALL && kind != CT_KIND_OBJECTS && kind != CT_KIND_PAD;
}

void ct_reserve_sample(struct ct_producer *self)
{
    const uint64_t slots = self->mask + 1, end = self->position;
    if (end - self->step < SAMPLE_LEAST_SLOTS || end - self->step > slots)
        return;
    uint64_t important = 0, others = 0;
    for (uint64_t at = self->step; at < end && important + others < SAMPLE_MOST_SLOTS;) {
        uint32_t head;
        memcpy(&head, self->ring + (at & self->mask) * CT_SLOT_BYTES, sizeof(head));
        const uint32_t kind = head >> CT_FUNCTION_BITS & CT_KIND_MASK;
        const uint32_t length = head >> (CT_FUNCTION_BITS + CT_KIND_BITS) & CT_SLOTS_MASK;
        if (length == 0) /* the segment has been abandoned, or another process has written here */
            break;
        if (is_important(kind))
            important += length;
        else if (kind != CT_KIND_PAD)
            others += length;
        at += length;
    }
    self->is_sampled = true;
    /* Assume a burst of BURST * slots with the same mix of calls. Once the burst has filled the part of the
     * ring that all calls may use, the important calls that follow must fit in the reserve. */
    if (others > 0)
        enlarge(self, (BURST - 1) * important * slots / others, SAMPLED_MAX);
}

void ct_reserve_adapt(struct ct_producer *self)
{
    const uint64_t slots = self->mask + 1;
    /* As the reserve grows, it takes over slots that important calls could use before, too. Half of
     * lost_slots is added to make up for those slots. */
    if (self->lost_slots > 0)
        enlarge(self, reserve_at(self, self->pressure) + self->lost_slots + self->lost_slots / 2,
                PRESSURE_MAX);
    else if (self->pressure > 0 && self->full_end > self->position + slots / 2)
        self->pressure--;
    self->lost_slots = 0;
}
