/* Tests a lane with a thread at each end. Every record must arrive once, complete and in order, even across
 * the ring's end, and even if positions begin just below a power of two. The producer occasionally switches
 * between the lane's rings. In the `threads` build, TSan checks this test. */
#include "lane.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RINGS = 3, RING_SLOTS = CT_RING_FIRST_SLOTS << CT_RING_STEP * (RINGS - 1), RECORDS = 300000 };

static struct ct_lane lane;
static uint8_t rings[RINGS][RING_SLOTS * CT_SLOT_BYTES] __attribute__((aligned(64)));
static const uint64_t first_position = (UINT64_C(1) << 32) - 3;

/* `state` and `tail` transfer the ownership of the bytes in the rings. As in the product, the copies are
 * ordinary accesses. */
static uint8_t *slot(uint64_t position, uint32_t level)
{
    return rings[level] + (position & (ct_ring_slots(0, level, RING_SLOTS) - 1)) * CT_SLOT_BYTES;
}

/* Makes a record that is one to four slots long. Short records have no value. */
static struct ct_record made(uint64_t i)
{
    const uint32_t slots = 1 + i % 4;
    return (struct ct_record){ .kind = CT_KIND_CALL,
                               .slots = slots & 7,
                               .status = (int32_t)(i % 1000),
                               .end = i,
                               .span = ct_span(i % 1000, i % 16, 0),
                               .value = slots > 1 ? ~i : 0 };
}

/* The producer's private state: the ring in use, and the position where it left each ring. */
static uint32_t level, switches;
static uint64_t begun = (UINT64_C(1) << 32) - 3, ended[RINGS];

/* Occasionally switches to a longer or a shorter ring, if the collector has emptied the other ring. */
static void switch_ring(uint64_t record, uint64_t position)
{
    const uint32_t other = (level + 1 + (uint32_t)(record / 700 % 2)) % RINGS;
    if (record % 700 != 0 || position == begun || ct_lane_tail(&lane) < ended[other])
        return;
    ended[level] = position;
    begun = position;
    level = other;
    switches++;
    ct_lane_switch(&lane, level, position);
}

static void *produce(void *unused)
{
    uint64_t position = first_position;
    for (uint64_t i = 0; i < RECORDS; i++) {
        switch_ring(i, position);
        const uint64_t capacity = ct_ring_slots(0, level, RING_SLOTS), slots = made(i).slots;
        const uint64_t place = position & (capacity - 1);
        const uint64_t pad = place + slots > capacity ? capacity - place : 0;
        for (uint64_t tail; tail = ct_lane_tail(&lane), tail = tail > begun ? tail : begun,
                            position + pad + slots - tail > capacity;)
            sched_yield();
        ct_lane_announce(&lane, position);
        if (pad > 0) {
            const uint32_t filler = ct_head(0, CT_KIND_PAD, (uint32_t)pad);
            memcpy(slot(position, level), &filler, sizeof(filler));
            position += pad;
        }
        const struct ct_record record = made(i);
        ct_record_put(slot(position, level), &record);
        for (uint64_t s = CT_HEAD_SLOTS; s < slots; s++)
            memset(slot(position + s, level), (int)(i & 0xff), CT_SLOT_BYTES);
        position += slots;
        ct_lane_publish(&lane, position);
    }
    return unused;
}

static void fail(const char *what, uint64_t at)
{
    fprintf(stderr, "record %llu: %s\n", (unsigned long long)at, what);
    exit(EXIT_FAILURE);
}

static uint64_t consume(uint64_t position, uint64_t head, const uint64_t since[CT_RINGS], uint64_t *next)
{
    while (position < head) {
        uint64_t until;
        const uint32_t here = ct_ring_at(since, RINGS, position, &until);
        const struct ct_record record = ct_record_head(slot(position, here));
        if (record.slots == 0 || position + record.slots > (head < until ? head : until))
            fail("its length is wrong", *next);
        if (record.kind == CT_KIND_CALL) {
            const struct ct_record whole = ct_record_get(slot(position, here)), due = made(*next);
            if (memcmp(&whole, &due, sizeof(due)) != 0)
                fail("it is not the one that is due", *next);
            for (uint64_t s = CT_HEAD_SLOTS; s < record.slots; s++) {
                const uint8_t *bytes = slot(position + s, here);
                if (bytes[0] != (*next & 0xff) || bytes[CT_SLOT_BYTES - 1] != (*next & 0xff))
                    fail("its payload is another's", *next);
            }
            ++*next;
        } else if (record.kind != CT_KIND_PAD) {
            fail("its kind is wrong", *next);
        }
        position += record.slots;
    }
    return position;
}

int main(void)
{
    atomic_store(&lane.state, first_position << 1);
    atomic_store(&lane.tail, first_position);
    ct_lane_switch(&lane, 0, first_position);
    pthread_t producer;
    if (pthread_create(&producer, NULL, produce, NULL) != 0)
        return EXIT_FAILURE;
    uint64_t position = first_position, next = 0;
    while (next < RECORDS) {
        const struct ct_lane_state state = ct_lane_state(&lane);
        if (state.position == position)
            sched_yield();
        uint64_t since[CT_RINGS];
        ct_lane_since(&lane, since);
        position = consume(position, state.position, since, &next);
        ct_lane_consume(&lane, position);
    }
    pthread_join(producer, NULL);
    const struct ct_lane_state end = ct_lane_state(&lane);
    if (end.announcing || end.position != position)
        fail("something is left", next);
    if (switches < RINGS)
        fail("it has hardly turned to another ring", next);
    return EXIT_SUCCESS;
}
