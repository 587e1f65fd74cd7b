/* A lane with both ends as threads: every record arrives once, whole and in order, across the ring's end and
 * with the positions starting just below a power of two, while the ring grows now and then. TSan watches it
 * in the `threads` build. */
#include "lane.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 64, RING_SLOTS = 1024, RECORDS = 300000 };

static struct ct_lane lane;
static uint8_t ring[RING_SLOTS * CT_SLOT_BYTES] __attribute__((aligned(64)));
static const uint64_t first_position = (UINT64_C(1) << 32) - 3;

/* The ring's bytes are handed over by `state` and `tail`; the copies are plain, as they are in the product.
 */
static struct ct_record *slot(uint64_t position, uint64_t capacity)
{
    return (struct ct_record *)(void *)(ring + (position & (capacity - 1)) * CT_SLOT_BYTES);
}

/* At most every so many records, that all lengths of the ring are gone round in. */
static uint64_t grown(uint64_t record, uint64_t position, uint64_t capacity)
{
    if (capacity == RING_SLOTS || record < capacity * 200 ||
        !ct_lane_may_grow(ct_lane_tail(&lane), position, capacity))
        return capacity;
    ct_lane_grow(&lane, 2 * capacity);
    return 2 * capacity;
}

static void *produce(void *unused)
{
    uint64_t position = first_position, capacity = FIRST_SLOTS;
    for (uint64_t i = 0; i < RECORDS; i++) {
        capacity = grown(i, position, capacity);
        const uint64_t slots = 1 + i % 3;
        const uint64_t place = position & (capacity - 1);
        const uint64_t pad = place + slots > capacity ? capacity - place : 0;
        while (position + pad + slots - ct_lane_tail(&lane) > capacity)
            sched_yield();
        ct_lane_announce(&lane, position);
        if (pad > 0) {
            *slot(position, capacity) = (struct ct_record){ .kind = CT_KIND_PAD, .slots = (uint8_t)pad };
            position += pad;
        }
        *slot(position, capacity) =
            (struct ct_record){ .kind = CT_KIND_CALL, .slots = (uint8_t)slots, .end = i, .value = ~i };
        for (uint64_t s = 1; s < slots; s++)
            memset(slot(position + s, capacity), (int)(i & 0xff), CT_SLOT_BYTES);
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

static uint64_t consume(uint64_t position, uint64_t head, uint64_t capacity, uint64_t *next)
{
    while (position < head) {
        struct ct_record record;
        memcpy(&record, slot(position, capacity), sizeof(record));
        if (record.slots == 0 || position + record.slots > head)
            fail("its length is wrong", *next);
        if (record.kind == CT_KIND_CALL) {
            if (record.end != *next || record.value != ~*next || record.slots != 1 + *next % 3)
                fail("it is not the one that is due", *next);
            for (uint64_t s = 1; s < record.slots; s++) {
                const uint8_t *bytes = (const uint8_t *)slot(position + s, capacity);
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
    ct_lane_grow(&lane, FIRST_SLOTS);
    pthread_t producer;
    if (pthread_create(&producer, NULL, produce, NULL) != 0)
        return EXIT_FAILURE;
    uint64_t position = first_position, next = 0;
    while (next < RECORDS) {
        const struct ct_lane_state state = ct_lane_state(&lane);
        if (state.position == position)
            sched_yield();
        position = consume(position, state.position, ct_lane_capacity(&lane), &next);
        ct_lane_consume(&lane, position);
    }
    pthread_join(producer, NULL);
    const struct ct_lane_state end = ct_lane_state(&lane);
    if (end.announcing || end.position != position)
        fail("something is left", next);
    if (ct_lane_capacity(&lane) != RING_SLOTS)
        fail("the ring has not grown", next);
    return EXIT_SUCCESS;
}
