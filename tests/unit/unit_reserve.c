/* Tests the hook's reserve.c. The size of a ring's reserve, which is closed to low-priority calls, depends on
 * the first records in the ring and on the number of lost calls. */
#include "../ensure.h"
#include "record.h"
#include "reserve.h"

enum { SLOTS = 1024, STEP = 240 };

static uint8_t ring[SLOTS * CT_SLOT_BYTES];

/* Returns a lane after STEP slots have been written to it: `launches` launches of four slots each, and then
 * plain calls. The written slots wrap around the ring's end. */
static struct ct_producer begun(int launches)
{
    struct ct_producer self = { .ring = ring, .mask = SLOTS - 1, .position = SLOTS - STEP / 2 };
    ct_reserve_begin(&self);
    for (uint32_t i = 0; i < STEP;) {
        const bool is_launch = i / 4 < (uint32_t)launches;
        const uint32_t slots = is_launch ? 4 : 1;
        const uint32_t head = ct_head(1, is_launch ? CT_KIND_LAUNCH : CT_KIND_CALL, slots);
        memcpy(ring + (self.position & self.mask) * CT_SLOT_BYTES, &head, sizeof(head));
        self.position += slots;
        i += slots;
    }
    return self;
}

static uint64_t sampled(int launches)
{
    struct ct_producer self = begun(launches);
    ct_reserve_sample(&self);
    ENSURE(self.is_sampled);
    return ct_reserve_share(&self);
}

static void check_sample(void)
{
    EXPECT(SLOTS * 3 / 4, sampled(0)); /* without important calls, the reserve is minimal */
    EXPECT(SLOTS * 3 / 4, sampled(3));
    EXPECT(SLOTS * 3 / 8, sampled(8));
    EXPECT(SLOTS * 3 / 16, sampled(20));
    EXPECT(SLOTS * 3 / 16, sampled(50));
}

/* The ring may contain arbitrary bytes. */
static void check_broken(void)
{
    struct ct_producer self = begun(20);
    memset(ring, 0, sizeof(ring));
    ct_reserve_sample(&self);
    EXPECT(SLOTS * 3 / 4, ct_reserve_share(&self));
    self = begun(20);
    memset(ring, 0xff, sizeof(ring));
    ct_reserve_sample(&self);
    self = begun(20);
    self.position = self.step + 100;
    ct_reserve_sample(&self);
    ENSURE(!self.is_sampled); /* too few slots have been written to take a sample */
    self.step = self.position + 1;
    ct_reserve_sample(&self);
    self.position += SLOTS + 2;
    ct_reserve_sample(&self);
    ENSURE(!self.is_sampled);
}

/* Adapts the reserve after `lost` slots were lost, with `empty` empty slots before the ring's end. */
static uint64_t adapted(struct ct_producer *self, uint32_t lost, uint64_t empty)
{
    if (lost > 0)
        ct_reserve_note_lost(self, lost);
    self->full_end = self->position + empty;
    ct_reserve_adapt(self);
    EXPECT(0, self->lost_slots);
    return ct_reserve_share(self);
}

static void check_adapt(void)
{
    struct ct_producer self = begun(0);
    EXPECT(SLOTS * 3 / 4, adapted(&self, 0, 0));
    EXPECT(SLOTS * 3 / 8, adapted(&self, 4, 0)); /* the reserve grows by at least one step */
    EXPECT(SLOTS * 3 / 4 >> 3, adapted(&self, 190, 0));
    EXPECT(SLOTS * 3 / 4 >> 6, adapted(&self, 100 * SLOTS, 0)); /* stays at the limit */
    EXPECT(SLOTS * 3 / 4 >> 6, adapted(&self, SLOTS, 0));
    EXPECT(SLOTS * 3 / 4 >> 6, adapted(&self, 0, SLOTS / 2)); /* half of the ring was in use */
    for (int pressure = 5; pressure >= 0; pressure--)
        EXPECT(SLOTS * 3 / 4 >> pressure, adapted(&self, 0, SLOTS / 2 + 1));
    EXPECT(SLOTS * 3 / 4, adapted(&self, 0, SLOTS));
}

int main(void)
{
    check_sample();
    check_broken();
    check_adapt();
    return EXIT_SUCCESS;
}
