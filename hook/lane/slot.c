#include "slot.h"

#include "bound.h"
#include "current.h"
#include "quiet.h"
#include "segment_file.h"
#include "system.h"
#include "test_point.h"

#include <sys/mman.h>

struct ct_slot_map {
    uint8_t *ring; /* NULL: none is mapped */
    size_t ring_bytes;
    bool is_kept; /* the child of a fork has private memory there for good */
};

enum {
    BLOCK_SLOTS = 16,
    BLOCKS = 2 * CT_LANES_MAX / BLOCK_SLOTS,
    BLOCK_MAPS = 4096,
    BLOCK_LANES = BLOCK_SLOTS * CT_LANE_HEADER_BYTES,
    BLOCK_PRODUCERS = BLOCK_SLOTS * sizeof(struct ct_producer),
};
static_assert(BLOCK_SLOTS * sizeof(struct ct_slot_map) <= BLOCK_MAPS, "maps");

/* Each is mapped at once and never unmapped: the maps, room for headers of lanes, producers. */
static uint8_t *blocks[BLOCKS];
static uint32_t slots; /* in use */

struct ct_producer ct_dormant, ct_unlaned;
__thread struct ct_producer *ct_self = &ct_dormant;

static _Atomic uint32_t free_lanes; /* CT_SLOT_FREE, about */

static struct ct_producer *slot_at(uint32_t slot)
{
    uint8_t *producers = blocks[slot / BLOCK_SLOTS] + BLOCK_MAPS + BLOCK_LANES;
    return (struct ct_producer *)(void *)producers + slot % BLOCK_SLOTS;
}

static struct ct_slot_map *map_of(uint32_t slot)
{
    return (struct ct_slot_map *)(void *)blocks[slot / BLOCK_SLOTS] + slot % BLOCK_SLOTS;
}

struct ct_slot_map *ct_slot_map(const struct ct_producer *producer)
{
    return map_of(producer->slot);
}

/* The address at which the header of its lane is mapped. */
static void *lane_of(uint32_t slot)
{
    return blocks[slot / BLOCK_SLOTS] + BLOCK_MAPS + slot % BLOCK_SLOTS * CT_LANE_HEADER_BYTES;
}

static bool add_block(void)
{
    const uint32_t block = slots / BLOCK_SLOTS;
    if (block >= BLOCKS)
        return false;
    if (blocks[block]) /* with slots that were never used */
        return true;
    uint8_t *memory =
        ct_bound_map(NULL, BLOCK_MAPS + BLOCK_LANES + BLOCK_PRODUCERS, PROT_READ | PROT_WRITE, -1, 0);
    if (!memory)
        return false;
    /* Linux 4.14; before it the atfork handler of process.c is all there is. */
    madvise(memory + BLOCK_MAPS + BLOCK_LANES, BLOCK_PRODUCERS, MADV_WIPEONFORK);
    CT_TEST_POINT("slot.block_made");
    blocks[block] = memory;
    return true;
}

/* Rings are written and read only while their thread holds the lane (`idle` is 0), and no thread lets go of
 * one then. */
void ct_slot_drop_ring(struct ct_slot_map *map)
{
    uint8_t *ring = map->ring;
    if (!ring || !ct_system_begin())
        return;
    map->ring = NULL;
    ct_bound_unmap(ring, map->ring_bytes);
    ct_system_end();
}

static uint32_t owner_of(const struct ct_producer *producer)
{
    return atomic_load_explicit(&producer->owner, memory_order_acquire);
}

void ct_slot_set_owner(struct ct_producer *producer, enum ct_slot_owner owner)
{
    /* Pairs with the acquire of owner_of(): the last owner's private words are ours to read. */
    atomic_store_explicit(&producer->owner, (uint32_t)owner, memory_order_release);
}

/* A slot without a lane; NULL without memory. The process lock is held. */
static struct ct_producer *spare_slot(void)
{
    for (uint32_t slot = 0; slot < slots; slot++) {
        struct ct_producer *producer = slot_at(slot);
        const uint32_t owner = owner_of(producer);
        const bool is_spare =
            owner == CT_SLOT_SPARE || (owner == CT_SLOT_FREE && producer->epoch != ct_process_epoch());
        if (!is_spare || map_of(slot)->is_kept)
            continue;
        ct_slot_drop_ring(map_of(slot));
        producer->slot = slot; /* a fork may have wiped it */
        return producer;
    }
    if (!add_block())
        return NULL;
    struct ct_producer *producer = slot_at(slots);
    producer->slot = slots++;
    return producer;
}

/* ---- taking and giving back ---- */

/* A lane that its thread gave back: with half its ring free, and no loss that the collector has not seen,
 * since that would pass to the new owner. */
struct ct_producer *ct_slot_take_free(void)
{
    for (uint32_t slot = 0; slot < slots; slot++) {
        struct ct_producer *producer = slot_at(slot);
        if (owner_of(producer) != CT_SLOT_FREE || producer->epoch != ct_process_epoch())
            continue;
        struct ct_lane *lane = producer->lane;
        CT_TEST_POINT("slot.found_free");
        uint64_t lost = 0;
        for (int cause = 0; cause < CT_LOSS_COUNT; cause++)
            lost += atomic_load_explicit(&lane->loss[cause].calls, memory_order_relaxed);
        const uint64_t used = producer->position - ct_lane_tail(lane);
        if (used > (producer->mask + 1) / 2 ||
            lost != atomic_load_explicit(&lane->loss_seen, memory_order_acquire)) {
            CT_TEST_POINT("slot.refused");
            continue;
        }
        ct_slot_set_owner(producer, CT_SLOT_OWNED);
        atomic_store_explicit(&lane->owner, CT_LANE_OWNED, memory_order_relaxed);
        atomic_fetch_sub_explicit(&free_lanes, 1, memory_order_relaxed);
        CT_TEST_POINT("slot.retaken");
        return producer;
    }
    return NULL;
}

struct ct_producer *ct_slot_take_new(struct ct_segment *segment)
{
    uint8_t *ring;
    struct ct_producer *producer = ct_segment_may_allocate(CT_BOUND_FIRST) ? spare_slot() : NULL;
    struct ct_lane *lane = producer ? ct_segment_lane(lane_of(producer->slot), &ring) : NULL;
    if (!lane)
        return NULL;
    CT_TEST_POINT("slot.mapped");
    const uint32_t slot = producer->slot;
    *producer = (struct ct_producer){
        .lane = lane,
        .ring = ring,
        .mask = CT_CHUNK_BYTES / CT_SLOT_BYTES - 1,
        .idle = 1,
        .index = ct_segment_lanes(),
        .epoch = ct_process_epoch(),
        .segment = segment,
        .slot = slot,
        .owner = CT_SLOT_OWNED,
    };
    *map_of(slot) = (struct ct_slot_map){ .ring = ring, .ring_bytes = CT_CHUNK_BYTES };
    ct_lane_grow(lane, CT_CHUNK_BYTES / CT_SLOT_BYTES);
    atomic_store_explicit(&lane->owner, CT_LANE_OWNED, memory_order_relaxed);
    CT_TEST_POINT("slot.owned");
    ct_segment_lane_done();
    CT_TEST_POINT("slot.lane_published");
    return producer;
}

bool ct_slot_may_take(void)
{
    return ct_segment_may_allocate(CT_BOUND_FIRST) ||
           atomic_load_explicit(&free_lanes, memory_order_relaxed) > 0;
}

void ct_slot_give_back(struct ct_producer *producer)
{
    atomic_store_explicit(&producer->lane->owner, CT_LANE_FREE, memory_order_relaxed);
    ct_slot_set_owner(producer, CT_SLOT_FREE);
    atomic_fetch_add_explicit(&free_lanes, 1, memory_order_relaxed);
}

void ct_slot_grow(struct ct_producer *self)
{
    CT_QUIET;
    const uint64_t now_slots = self->mask + 1;
    if (now_slots >= ct_segment_ring_slots() || !ct_segment_may_allocate(CT_BOUND_MORE) || !ct_system_begin())
        return;
    if (!ct_process_lock()) {
        ct_system_end();
        return;
    }
    CT_TEST_POINT("slot.growing");
    struct ct_slot_map *map = map_of(self->slot);
    const size_t old_bytes = map->ring_bytes, bytes = 2 * old_bytes;
    uint8_t *old = map->ring, *ring = NULL;
    /* Else it is an earlier segment's. */
    if (self->epoch == ct_process_epoch())
        ring = ct_segment_ring(self->index, bytes);
    if (ring) {
        self->ring = map->ring = ring;
        map->ring_bytes = bytes;
        self->mask = 2 * now_slots - 1;
        ct_lane_grow(self->lane, 2 * now_slots);
        CT_TEST_POINT("slot.grown");
        ct_bound_unmap(old, old_bytes);
    }
    ct_process_unlock();
    ct_system_end();
}

/* ---- private memory in the place of lanes ---- */

void ct_slots_abandon(void)
{
    for (uint32_t slot = 0; slot < slots; slot++) {
        struct ct_producer *producer = slot_at(slot);
        struct ct_slot_map *map = map_of(slot);
        if (!producer->lane || producer->epoch != ct_process_epoch())
            continue;
        ct_bound_map(lane_of(slot), CT_LANE_HEADER_BYTES, PROT_READ | PROT_WRITE, -1, 0);
        if (owner_of(producer) == CT_SLOT_FREE)
            ct_slot_drop_ring(map);
        else if (map->ring)
            ct_bound_map(map->ring, map->ring_bytes, PROT_READ | PROT_WRITE, -1, 0);
        CT_TEST_POINT("slot.abandoned");
    }
    atomic_store_explicit(&free_lanes, 0, memory_order_relaxed);
}

void ct_slots_redirect(struct ct_producer *producer, struct ct_slot_map *map, struct ct_lane *place)
{
    atomic_store_explicit(&free_lanes, 0, memory_order_relaxed);
    if (!map || producer->lane)
        return;
    struct ct_lane *lane = ct_bound_map(place, CT_LANE_HEADER_BYTES, PROT_READ | PROT_WRITE, -1, 0);
    if (!lane || !ct_bound_map(map->ring, map->ring_bytes, PROT_READ | PROT_WRITE, -1, 0))
        return;
    map->is_kept = true;
    producer->segment = ct_process_current();
    producer->lane = lane;
    producer->ring = map->ring;
    atomic_store_explicit(&lane->wake, UINT64_MAX, memory_order_relaxed);
}
