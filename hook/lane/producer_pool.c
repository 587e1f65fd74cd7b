#include "producer_pool.h"

#include "bound.h"
#include "current.h"
#include "error_guard.h"
#include "segment_file.h"
#include "system.h"
#include "test_point.h"

#include <sys/mman.h>

enum {
    BEGIN_SLOTS = 4096 / CT_SLOT_BYTES, /* slots that must be free in a ring before the lane is handed over */
    BLOCK_COUNT = 16,
    BLOCKS = 2 * CT_LANES_MAX / BLOCK_COUNT,
    BLOCK_MAPS = 4096,
    BLOCK_LANES = BLOCK_COUNT * CT_LANE_HEADER_BYTES,
    PRODUCER_BYTES = 4096,
    /* The offset of a producer from the start of its page. Lanes begin at the start of a page. Without the
     * offset, loads from a producer and stores to its lane would have the same low 12 address bits, and
     * processors would delay the loads. */
    PRODUCER_APART = 192,
    BLOCK_PRODUCERS = BLOCK_COUNT * PRODUCER_BYTES,
};
static_assert(PRODUCER_APART + sizeof(struct ct_producer) <= PRODUCER_BYTES, "producers");
static_assert(BLOCK_COUNT * sizeof(struct ct_ring_map) <= BLOCK_MAPS, "maps");

/* Each block is a single mapping, which is never unmapped. It contains the maps, the producers, and room for
 * the lanes' headers. */
static uint8_t *blocks[BLOCKS];
static _Atomic uint32_t in_use; /* producers */

struct ct_producer ct_dormant, ct_unlaned, ct_untraced;
__thread struct ct_producer *ct_self = &ct_dormant;

static _Atomic uint32_t free_lanes; /* approximate number of CT_PRODUCER_FREE */

static struct ct_producer *producer_at(uint32_t number)
{
    uint8_t *producers = blocks[number / BLOCK_COUNT] + BLOCK_MAPS + BLOCK_LANES;
    return (struct ct_producer *)(void *)(producers + number % BLOCK_COUNT * PRODUCER_BYTES + PRODUCER_APART);
}

static struct ct_ring_map *map_of(uint32_t number)
{
    return (struct ct_ring_map *)(void *)blocks[number / BLOCK_COUNT] + number % BLOCK_COUNT;
}

struct ct_ring_map *ct_ring_map(const struct ct_producer *producer)
{
    return map_of(producer->number);
}

/* Returns the address at which the header of a producer's lane is mapped. */
static void *lane_of(uint32_t number)
{
    return blocks[number / BLOCK_COUNT] + BLOCK_MAPS + number % BLOCK_COUNT * CT_LANE_HEADER_BYTES;
}

static bool add_block(void)
{
    const uint32_t block = in_use / BLOCK_COUNT;
    if (block >= BLOCKS)
        return false;
    if (blocks[block]) /* its producers were never used */
        return true;
    uint8_t *memory =
        ct_bound_map(NULL, BLOCK_MAPS + BLOCK_LANES + BLOCK_PRODUCERS, PROT_READ | PROT_WRITE, -1, 0);
    if (!memory)
        return false;
    /* MADV_WIPEONFORK needs Linux 4.14. On older kernels, only the atfork handler in process.c protects the
     * child. */
    madvise(memory + BLOCK_MAPS + BLOCK_LANES, BLOCK_PRODUCERS, MADV_WIPEONFORK);
    CT_TEST_POINT("producer_pool.block_made");
    blocks[block] = memory;
    return true;
}

/* A thread accesses its rings only while it holds the lane (`idle` is 0), and does not drop a lane that it
 * holds, so no thread is using the rings here. */
void ct_ring_map_drop(struct ct_ring_map *map)
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

void ct_producer_set_owner(struct ct_producer *producer, enum ct_producer_owner owner)
{
    /* Pairs with the acquire in owner_of(), after which the last owner's private fields may be read. */
    atomic_store_explicit(&producer->owner, (uint32_t)owner, memory_order_release);
}

/* Returns a producer without a lane, or NULL if out of memory. Requires the process lock. */
static struct ct_producer *spare_producer(void)
{
    for (uint32_t number = 0; number < in_use; number++) {
        struct ct_producer *producer = producer_at(number);
        const uint32_t owner = owner_of(producer);
        const bool is_spare = owner == CT_PRODUCER_SPARE ||
                              (owner == CT_PRODUCER_FREE && producer->epoch != ct_process_epoch());
        if (!is_spare || map_of(number)->is_kept)
            continue;
        ct_ring_map_drop(map_of(number));
        producer->number = number; /* a fork may have wiped the number */
        return producer;
    }
    if (!add_block())
        return NULL;
    struct ct_producer *producer = producer_at(in_use);
    producer->number = in_use++;
    return producer;
}

/* ---- taking and returning lanes ---- */

/* Takes a lane only if its ring has enough room to start with, and if the collector has seen all losses of
 * its last owner. Otherwise, those losses would be attributed to the new owner. */
struct ct_producer *ct_producer_take_free(void)
{
    for (uint32_t number = 0; number < in_use; number++) {
        struct ct_producer *producer = producer_at(number);
        if (owner_of(producer) != CT_PRODUCER_FREE || producer->epoch != ct_process_epoch())
            continue;
        struct ct_lane *lane = producer->lane;
        CT_TEST_POINT("producer_pool.found_free");
        uint64_t lost = 0;
        for (int cause = 0; cause < CT_LANE_LOSS_COUNT; cause++)
            lost += atomic_load_explicit(&lane->loss[cause].calls, memory_order_relaxed);
        const uint64_t used = producer->position - ct_lane_tail(lane);
        if (used + BEGIN_SLOTS > producer->mask + 1 ||
            lost != atomic_load_explicit(&lane->loss_seen, memory_order_acquire)) {
            CT_TEST_POINT("producer_pool.refused");
            continue;
        }
        ct_producer_set_owner(producer, CT_PRODUCER_OWNED);
        atomic_store_explicit(&lane->owner, CT_LANE_OWNED, memory_order_relaxed);
        atomic_fetch_sub_explicit(&free_lanes, 1, memory_order_relaxed);
        CT_TEST_POINT("producer_pool.retaken");
        return producer;
    }
    return NULL;
}

struct ct_producer *ct_producer_take_new(struct ct_segment *segment)
{
    uint8_t *ring;
    struct ct_producer *producer = ct_segment_may_allocate(CT_BOUND_FIRST) ? spare_producer() : NULL;
    struct ct_lane *lane = producer ? ct_segment_lane(lane_of(producer->number), &ring) : NULL;
    if (!lane)
        return NULL;
    CT_TEST_POINT("producer_pool.mapped");
    const uint32_t number = producer->number;
    const uint64_t ring_bytes = ct_segment_first_bytes(ct_segment_lanes());
    *producer = (struct ct_producer){
        .lane = lane,
        .ring = ring,
        .mask = ring_bytes / CT_SLOT_BYTES - 1,
        .sound = 1,
        .idle = 1,
        .is_counter = ct_clock_is_counter,
        .index = ct_segment_lanes(),
        .epoch = ct_process_epoch(),
        .segment = segment,
        .number = number,
        .owner = CT_PRODUCER_OWNED,
    };
    *map_of(number) = (struct ct_ring_map){ .ring = ring, .ring_bytes = ring_bytes, .used = ring };
    atomic_store_explicit(&lane->owner, CT_LANE_OWNED, memory_order_relaxed);
    CT_TEST_POINT("producer_pool.owned");
    ct_segment_lane_done();
    CT_TEST_POINT("producer_pool.lane_published");
    return producer;
}

bool ct_producer_may_take(void)
{
    return ct_segment_may_allocate(CT_BOUND_FIRST) ||
           atomic_load_explicit(&free_lanes, memory_order_relaxed) > 0;
}

void ct_producer_give_back(struct ct_producer *producer)
{
    atomic_store_explicit(&producer->lane->owner, CT_LANE_FREE, memory_order_relaxed);
    ct_producer_set_owner(producer, CT_PRODUCER_FREE);
    atomic_fetch_add_explicit(&free_lanes, 1, memory_order_relaxed);
}

static uint32_t open_calls(const struct ct_producer *producer, bool (*counts)(uint32_t function))
{
    struct ct_open_call calls[CT_OPEN_MAX];
    const uint64_t held_start = atomic_load(&producer->held_start);
    const uint32_t depth = ct_lane_depth(producer->lane), known = depth < CT_OPEN_MAX ? depth : CT_OPEN_MAX;
    uint32_t found = depth - known;
    ct_lane_open(producer->lane, known, calls);
    for (uint32_t i = 0; i < known; i++)
        found += counts(calls[i].function) && calls[i].start != held_start;
    return found;
}

uint32_t ct_producers_open_calls(bool (*counts)(uint32_t function))
{
    uint32_t found = 0;
    for (uint32_t number = 0; number < in_use; number++) {
        const struct ct_producer *producer = producer_at(number);
        if (owner_of(producer) == CT_PRODUCER_OWNED && producer->lane &&
            producer->epoch == ct_process_epoch())
            found += open_calls(producer, counts);
    }
    return found;
}

/* Maps private memory over the rings. Returns false on failure. */
static bool make_private(const struct ct_ring_map *map)
{
    const int access = PROT_READ | PROT_WRITE;
    return (!map->ring || ct_bound_map(map->ring, map->ring_bytes, access, -1, 0)) &&
           (!map->longer || ct_bound_map(map->longer, map->longer_bytes, access, -1, 0));
}

/* ---- private memory over lanes ---- */

bool ct_producers_abandon(uint32_t epoch, uint32_t *next, uint32_t most)
{
    for (uint32_t done = 0; *next < in_use; ++*next) {
        const uint32_t number = *next;
        struct ct_producer *producer = producer_at(number);
        struct ct_ring_map *map = map_of(number);
        if (!producer->lane || producer->epoch != epoch)
            continue;
        if (done++ == most)
            return false;
        ct_bound_map(lane_of(number), CT_LANE_HEADER_BYTES, PROT_READ | PROT_WRITE, -1, 0);
        producer->limit = producer->reserve = 0;
        producer->depth = CT_DEPTH_STALE;
        if (owner_of(producer) == CT_PRODUCER_FREE)
            ct_ring_map_drop(map);
        else
            make_private(map);
        CT_TEST_POINT("producer_pool.abandoned");
    }
    atomic_store_explicit(&free_lanes, 0, memory_order_relaxed);
    return true;
}

void ct_producers_redirect(struct ct_producer *producer, struct ct_ring_map *map, struct ct_lane *place)
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
