#include "slot.h"

#include "bound.h"
#include "current.h"
#include "quiet.h"
#include "segment_file.h"
#include "system.h"
#include "test_point.h"

#include <sys/mman.h>

enum {
    BEGIN_SLOTS = 4096 / CT_SLOT_BYTES, /* free slots in the ring, needed to hand the lane over */
    BLOCK_SLOTS = 16,
    BLOCKS = 2 * CT_LANES_MAX / BLOCK_SLOTS,
    BLOCK_MAPS = 4096,
    BLOCK_LANES = BLOCK_SLOTS * CT_LANE_HEADER_BYTES,
    PRODUCER_BYTES = 4096,
    /* A lane begins on a page, and so does each producer's room. Without this distance, loads from one would
     * have the same low 12 bits as stores to the other, and processors would delay the loads. */
    PRODUCER_APART = 192,
    BLOCK_PRODUCERS = BLOCK_SLOTS * PRODUCER_BYTES,
};
static_assert(PRODUCER_APART + sizeof(struct ct_producer) <= PRODUCER_BYTES, "producers");
static_assert(BLOCK_SLOTS * sizeof(struct ct_slot_map) <= BLOCK_MAPS, "maps");

/* Each block is mapped at once and never unmapped. It has the maps, room for the lanes' headers, and the
 * producers. */
static uint8_t *blocks[BLOCKS];
static uint32_t slots; /* in use */

struct ct_producer ct_dormant, ct_unlaned;
__thread struct ct_producer *ct_self = &ct_dormant;

static _Atomic uint32_t free_lanes; /* approximate number of CT_SLOT_FREE */

static struct ct_producer *slot_at(uint32_t slot)
{
    uint8_t *producers = blocks[slot / BLOCK_SLOTS] + BLOCK_MAPS + BLOCK_LANES;
    return (struct ct_producer *)(void *)(producers + slot % BLOCK_SLOTS * PRODUCER_BYTES + PRODUCER_APART);
}

static struct ct_slot_map *map_of(uint32_t slot)
{
    return (struct ct_slot_map *)(void *)blocks[slot / BLOCK_SLOTS] + slot % BLOCK_SLOTS;
}

struct ct_slot_map *ct_slot_map(const struct ct_producer *producer)
{
    return map_of(producer->slot);
}

/* Returns the address at which the header of the slot's lane is mapped. */
static void *lane_of(uint32_t slot)
{
    return blocks[slot / BLOCK_SLOTS] + BLOCK_MAPS + slot % BLOCK_SLOTS * CT_LANE_HEADER_BYTES;
}

static bool add_block(void)
{
    const uint32_t block = slots / BLOCK_SLOTS;
    if (block >= BLOCKS)
        return false;
    if (blocks[block]) /* its slots were never used */
        return true;
    uint8_t *memory =
        ct_bound_map(NULL, BLOCK_MAPS + BLOCK_LANES + BLOCK_PRODUCERS, PROT_READ | PROT_WRITE, -1, 0);
    if (!memory)
        return false;
    /* Since Linux 4.14. Before that, only the atfork handler of process.c protects the child. */
    madvise(memory + BLOCK_MAPS + BLOCK_LANES, BLOCK_PRODUCERS, MADV_WIPEONFORK);
    CT_TEST_POINT("slot.block_made");
    blocks[block] = memory;
    return true;
}

/* Rings are written and read only while their thread holds the lane (`idle` is 0). No thread lets go of a
 * lane at that time. */
void ct_slot_drop_rings(struct ct_slot_map *map)
{
    if ((!map->ring && !map->longer) || !ct_system_begin())
        return;
    if (map->ring)
        ct_bound_unmap(map->ring, map->ring_bytes);
    if (map->longer)
        ct_bound_unmap(map->longer, map->longer_bytes);
    map->ring = map->longer = NULL;
    ct_system_end();
}

static uint32_t owner_of(const struct ct_producer *producer)
{
    return atomic_load_explicit(&producer->owner, memory_order_acquire);
}

void ct_slot_set_owner(struct ct_producer *producer, enum ct_slot_owner owner)
{
    /* Pairs with the acquire in owner_of(), after which the last owner's private words may be read. */
    atomic_store_explicit(&producer->owner, (uint32_t)owner, memory_order_release);
}

/* Returns a slot without a lane, NULL if out of memory. Requires the process lock. */
static struct ct_producer *spare_slot(void)
{
    for (uint32_t slot = 0; slot < slots; slot++) {
        struct ct_producer *producer = slot_at(slot);
        const uint32_t owner = owner_of(producer);
        const bool is_spare =
            owner == CT_SLOT_SPARE || (owner == CT_SLOT_FREE && producer->epoch != ct_process_epoch());
        if (!is_spare || map_of(slot)->is_kept)
            continue;
        ct_slot_drop_rings(map_of(slot));
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

/* Takes a lane only if its ring has enough room to start, and if the collector has seen all of its losses.
 * Unseen losses would be attributed to the new owner. */
struct ct_producer *ct_slot_take_free(void)
{
    for (uint32_t slot = 0; slot < slots; slot++) {
        struct ct_producer *producer = slot_at(slot);
        if (owner_of(producer) != CT_SLOT_FREE || producer->epoch != ct_process_epoch())
            continue;
        struct ct_lane *lane = producer->lane;
        CT_TEST_POINT("slot.found_free");
        uint64_t lost = 0;
        for (int cause = 0; cause < CT_LANE_LOSS_COUNT; cause++)
            lost += atomic_load_explicit(&lane->loss[cause].calls, memory_order_relaxed);
        const uint64_t used = producer->position - ct_lane_tail(lane);
        if (used + BEGIN_SLOTS > producer->mask + 1 ||
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
    const uint64_t ring_bytes = ct_segment_first_bytes(ct_segment_lanes());
    *producer = (struct ct_producer){
        .lane = lane,
        .ring = ring,
        .mask = ring_bytes / CT_SLOT_BYTES - 1,
        .sound = 1,
        .idle = 1,
        .index = ct_segment_lanes(),
        .epoch = ct_process_epoch(),
        .segment = segment,
        .slot = slot,
        .owner = CT_SLOT_OWNED,
    };
    *map_of(slot) = (struct ct_slot_map){ .ring = ring, .ring_bytes = ring_bytes, .used = ring };
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

/* Maps private memory over the rings. Returns false on failure. */
static bool make_private(const struct ct_slot_map *map)
{
    const int access = PROT_READ | PROT_WRITE;
    return (!map->ring || ct_bound_map(map->ring, map->ring_bytes, access, -1, 0)) &&
           (!map->longer || ct_bound_map(map->longer, map->longer_bytes, access, -1, 0));
}

/* ---- private memory over lanes ---- */

void ct_slots_abandon(void)
{
    for (uint32_t slot = 0; slot < slots; slot++) {
        struct ct_producer *producer = slot_at(slot);
        struct ct_slot_map *map = map_of(slot);
        if (!producer->lane || producer->epoch != ct_process_epoch())
            continue;
        ct_bound_map(lane_of(slot), CT_LANE_HEADER_BYTES, PROT_READ | PROT_WRITE, -1, 0);
        producer->limit = producer->reserve = 0;
        producer->depth = CT_DEPTH_STALE;
        if (owner_of(producer) == CT_SLOT_FREE)
            ct_slot_drop_rings(map);
        else
            make_private(map);
        CT_TEST_POINT("slot.abandoned");
    }
    atomic_store_explicit(&free_lanes, 0, memory_order_relaxed);
}

void ct_slots_redirect(struct ct_producer *producer, struct ct_slot_map *map, struct ct_lane *place)
{
    atomic_store_explicit(&free_lanes, 0, memory_order_relaxed);
    if (!map || !map->ring || producer->lane)
        return;
    struct ct_lane *lane = ct_bound_map(place, CT_LANE_HEADER_BYTES, PROT_READ | PROT_WRITE, -1, 0);
    if (!lane || !make_private(map))
        return;
    map->is_kept = true;
    producer->segment = ct_process_current();
    producer->lane = lane;
    producer->ring = map->used;
    atomic_store_explicit(&lane->wake, UINT64_MAX, memory_order_relaxed);
}
