/* A thread's lane: taken at its first call, given back at its exit, then taken by the next thread. Called by
 * the slow way of a call. */
#include "bound.h"
#include "lock.h"
#include "object_names.h"
#include "segment_file.h"
#include "system.h"
#include "test_point.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

struct ct_producer ct_dormant, ct_unlaned;
__thread struct ct_producer *ct_self = &ct_dormant;

/* ---- slots: a producer, and where its lane lies; there are as many as threads had lanes at once ---- */

enum slot_owner {
    SLOT_SPARE = 0, /* nobody's, and no lane of the current segment */
    SLOT_FREE,      /* a lane whose thread has given it back; of an earlier segment it is a spare one */
    SLOT_OWNED,
    /* Its thread has let go of it while a call was open, which may be about to enter or to leave, and come to
     * its end after a handler's. */
    SLOT_LEFT,
};

/* Inherited by a fork's child, as the memory is. */
struct slot_place {
    uint8_t *ring; /* NULL: none is mapped */
    size_t ring_bytes;
    bool is_kept; /* the child of a fork has private memory there for good */
};

enum {
    BLOCK_SLOTS = 16,
    BLOCKS = 2 * CT_LANES_MAX / BLOCK_SLOTS,
    BLOCK_PLACES = 4096,
    BLOCK_LANES = BLOCK_SLOTS * CT_LANE_HEADER_BYTES,
    BLOCK_PRODUCERS = BLOCK_SLOTS * sizeof(struct ct_producer),
};
static_assert(BLOCK_SLOTS * sizeof(struct slot_place) <= BLOCK_PLACES, "slot places");

/* Each is mapped at once and never unmapped: the places, room for headers of lanes, producers. */
static uint8_t *blocks[BLOCKS];
static uint32_t slots; /* in use */

/* Of ct_self, in memory that a fork's child has, too. */
static __thread struct slot_place *own_place;
static __thread void *own_lane;
static __thread struct ct_producer *left; /* by this thread */

static _Atomic uint32_t free_lanes;   /* SLOT_FREE, about */
static _Atomic uint64_t next_take_ns; /* CLOCK_MONOTONIC_COARSE: none of them was fit to be taken */

static pthread_key_t exit_key;
static _Atomic uint32_t exit_key_state; /* 0 none, 1 being made, 2 ready, 3 not to be had */

static struct ct_producer *slot_at(uint32_t slot)
{
    uint8_t *producers = blocks[slot / BLOCK_SLOTS] + BLOCK_PLACES + BLOCK_LANES;
    return (struct ct_producer *)(void *)producers + slot % BLOCK_SLOTS;
}

static struct slot_place *place_of(uint32_t slot)
{
    return (struct slot_place *)(void *)blocks[slot / BLOCK_SLOTS] + slot % BLOCK_SLOTS;
}

/* Where the header of its lane is mapped. */
static void *lane_of(uint32_t slot)
{
    return blocks[slot / BLOCK_SLOTS] + BLOCK_PLACES + slot % BLOCK_SLOTS * CT_LANE_HEADER_BYTES;
}

static bool add_block(void)
{
    const uint32_t block = slots / BLOCK_SLOTS;
    if (block >= BLOCKS)
        return false;
    if (blocks[block]) /* with slots that were never used */
        return true;
    uint8_t *memory =
        ct_bound_map(NULL, BLOCK_PLACES + BLOCK_LANES + BLOCK_PRODUCERS, PROT_READ | PROT_WRITE, -1, 0);
    if (!memory)
        return false;
#ifdef MADV_WIPEONFORK
    /* Linux 4.14; before it the atfork handler in process.c is all there is. */
    madvise(memory + BLOCK_PLACES + BLOCK_LANES, BLOCK_PRODUCERS, MADV_WIPEONFORK);
#endif
    CT_TEST_POINT("thread.block_made");
    blocks[block] = memory;
    return true;
}

/* Rings are written and read only while their thread holds the lane (`idle` is 0), and no thread lets go of
 * one then. */
static void drop_ring(struct slot_place *place)
{
    uint8_t *ring = place->ring;
    if (!ring || !ct_system_begin())
        return;
    place->ring = NULL;
    ct_bound_unmap(ring, place->ring_bytes);
    ct_system_end();
}

static uint32_t owner_of(const struct ct_producer *producer)
{
    return atomic_load_explicit(&producer->owner, memory_order_acquire);
}

static void set_owner(struct ct_producer *producer, uint32_t owner)
{
    /* Pairs with the acquire of owner_of(): the last owner's private words are ours to read. */
    atomic_store_explicit(&producer->owner, owner, memory_order_release);
}

/* A slot without a lane; NULL without memory. The process lock is held. */
static struct ct_producer *spare_slot(void)
{
    for (uint32_t slot = 0; slot < slots; slot++) {
        struct ct_producer *producer = slot_at(slot);
        const uint32_t owner = owner_of(producer);
        const bool is_spare =
            owner == SLOT_SPARE || (owner == SLOT_FREE && producer->epoch != ct_process_epoch());
        if (!is_spare || place_of(slot)->is_kept)
            continue;
        drop_ring(place_of(slot));
        producer->slot = slot; /* which a fork has wiped */
        return producer;
    }
    if (!add_block())
        return NULL;
    struct ct_producer *producer = slot_at(slots);
    producer->slot = slots++;
    return producer;
}

/* ---- letting go ---- */

/* Runs at thread exit. Calls that come later (from other keys' destructors) take a lane anew, and this
 * destructor runs again. */
static void give_back(void *unused)
{
    (void)unused;
    struct ct_producer *self = ct_self;
    ct_named_thread_exit();
    ct_self = &ct_dormant;
    own_place = NULL;
    ct_range_thread_exit();
    /* What was open in them is no more. */
    for (struct ct_producer *next; left; left = next) {
        next = left->next_left;
        set_owner(left, SLOT_SPARE);
    }
    if (!self->lane)
        return;
    CT_TEST_POINT("thread.leaving");
    self->depth = 0;
    self->limit = 0;
    if (self->epoch != ct_process_epoch()) {
        set_owner(self, SLOT_SPARE);
        return;
    }
    /* Asynchronous cancellation may have come behind the publishing of a record, or before it. */
    self->position = ct_record_published(self);
    ct_lane_publish(self->lane, self->position);
    ct_lane_leave(self->lane, 0);
    CT_TEST_POINT("thread.emptied");
    atomic_store_explicit(&self->lane->owner, CT_LANE_FREE, memory_order_relaxed);
    set_owner(self, SLOT_FREE);
    atomic_fetch_add_explicit(&free_lanes, 1, memory_order_relaxed);
    CT_TEST_POINT("thread.given_back");
}

static void arm_exit(void)
{
    uint32_t none = 0;
    if (atomic_compare_exchange_strong(&exit_key_state, &none, 1))
        atomic_store(&exit_key_state, pthread_key_create(&exit_key, give_back) == 0 ? 2 : 3);
    if (atomic_load(&exit_key_state) == 2)
        pthread_setspecific(exit_key, &exit_key);
}

void ct_thread_watch_exit(void)
{
    arm_exit();
}

void ct_thread_lanes_abandon(void)
{
    for (uint32_t slot = 0; slot < slots; slot++) {
        struct ct_producer *producer = slot_at(slot);
        struct slot_place *place = place_of(slot);
        if (!producer->lane || producer->epoch != ct_process_epoch())
            continue;
        ct_bound_map(lane_of(slot), CT_LANE_HEADER_BYTES, PROT_READ | PROT_WRITE, -1, 0);
        if (owner_of(producer) == SLOT_FREE)
            drop_ring(place);
        else if (place->ring)
            ct_bound_map(place->ring, place->ring_bytes, PROT_READ | PROT_WRITE, -1, 0);
        CT_TEST_POINT("thread.abandoned");
    }
    atomic_store_explicit(&free_lanes, 0, memory_order_relaxed);
}

void ct_thread_forget(void)
{
    ct_self->limit = 0; /* calls that are under way go the slow way out */
    ct_self = &ct_dormant;
    own_place = NULL;
    left = NULL;
}

/* The outermost call that is open: the place of a range is no address (range.c). */
static uintptr_t outermost(const struct ct_producer *self)
{
    for (uint32_t i = 0; i < self->depth && i < CT_OPEN_MAX; i++) {
        if ((intptr_t)self->frames[i] > 0)
            return self->frames[i];
    }
    return 0;
}

void ct_thread_let_go(void)
{
    struct ct_producer *self = ct_self;
    if (!self->lane)
        return;
    self->limit = 0; /* calls that are under way go the slow way out */
    ct_self = &ct_dormant;
    own_place = NULL;
    drop_ring(place_of(self->slot));
    self->around = outermost(self);
    self->next_left = left;
    left = self;
    set_owner(self, SLOT_LEFT);
}

/* Slots that this thread has let go of are spare once the calls that were open are left, as is seen from a
 * call at `place`. */
static void release_left(uintptr_t place)
{
    for (struct ct_producer **link = &left; *link;) {
        struct ct_producer *producer = *link;
        if (producer->around && !(place && ct_record_left(producer->around, place))) {
            link = &producer->next_left;
            continue;
        }
        *link = producer->next_left;
        set_owner(producer, SLOT_SPARE);
    }
}

void ct_thread_redirect(void)
{
    struct ct_producer *self = ct_self;
    atomic_store_explicit(&free_lanes, 0, memory_order_relaxed);
    if (self == &ct_dormant || self->lane || !own_place)
        return;
    struct ct_lane *lane = ct_bound_map(own_lane, CT_LANE_HEADER_BYTES, PROT_READ | PROT_WRITE, -1, 0);
    if (!lane || !ct_bound_map(own_place->ring, own_place->ring_bytes, PROT_READ | PROT_WRITE, -1, 0))
        return;
    own_place->is_kept = true;
    self->segment = ct_process_current();
    self->lane = lane;
    self->ring = own_place->ring;
    atomic_store_explicit(&lane->wake, UINT64_MAX, memory_order_relaxed);
}

/* ---- taking ---- */

/* A lane that its thread gave back: with half its ring free, and no loss that the collector has not seen,
 * since that would pass to the new owner. */
static struct ct_producer *take_free(void)
{
    for (uint32_t slot = 0; slot < slots; slot++) {
        struct ct_producer *producer = slot_at(slot);
        if (owner_of(producer) != SLOT_FREE || producer->epoch != ct_process_epoch())
            continue;
        struct ct_lane *lane = producer->lane;
        CT_TEST_POINT("thread.found_free");
        uint64_t lost = 0;
        for (int cause = 0; cause < CT_LOSS_COUNT; cause++)
            lost += atomic_load_explicit(&lane->loss[cause].calls, memory_order_relaxed);
        const uint64_t used = producer->position - ct_lane_tail(lane);
        if (used > (producer->mask + 1) / 2 ||
            lost != atomic_load_explicit(&lane->loss_seen, memory_order_acquire)) {
            CT_TEST_POINT("thread.refused");
            continue;
        }
        set_owner(producer, SLOT_OWNED);
        atomic_store_explicit(&lane->owner, CT_LANE_OWNED, memory_order_relaxed);
        atomic_fetch_sub_explicit(&free_lanes, 1, memory_order_relaxed);
        CT_TEST_POINT("thread.retaken");
        return producer;
    }
    return NULL;
}

/* Between ct_system_begin() and end. */
static struct ct_producer *take_new(struct ct_segment *segment)
{
    uint8_t *ring;
    struct ct_producer *producer = ct_segment_may_allocate(CT_BOUND_FIRST) ? spare_slot() : NULL;
    struct ct_lane *lane = producer ? ct_segment_lane(lane_of(producer->slot), &ring) : NULL;
    if (!lane)
        return NULL;
    CT_TEST_POINT("thread.mapped");
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
        .owner = SLOT_OWNED,
    };
    *place_of(slot) = (struct slot_place){ .ring = ring, .ring_bytes = CT_CHUNK_BYTES };
    ct_lane_grow(lane, CT_CHUNK_BYTES / CT_SLOT_BYTES);
    atomic_store_explicit(&lane->owner, CT_LANE_OWNED, memory_order_relaxed);
    CT_TEST_POINT("thread.owned");
    ct_segment_lane_done();
    CT_TEST_POINT("thread.lane_published");
    return producer;
}

/* Whether there may be a lane for another thread: where there was none, nobody looks for a moment. */
static bool may_take(void)
{
    return ct_coarse_ns() >= atomic_load_explicit(&next_take_ns, memory_order_relaxed) &&
           (ct_segment_may_allocate(CT_BOUND_FIRST) ||
            atomic_load_explicit(&free_lanes, memory_order_relaxed) > 0);
}

static struct ct_producer *take(struct ct_segment *segment, uintptr_t place)
{
    enum { TAKE_INTERVAL_NS = 10000000 };
    if (!may_take() || !ct_process_lock())
        return NULL;
    struct ct_producer *producer = NULL;
    if (segment == ct_process_current()) {
        release_left(place);
        producer = take_free();
        if (!producer && ct_system_begin()) {
            producer = take_new(segment);
            ct_system_end();
        }
        if (!producer)
            atomic_store_explicit(&next_take_ns, ct_coarse_ns() + TAKE_INTERVAL_NS, memory_order_relaxed);
    }
    ct_process_unlock();
    return producer;
}

void ct_thread_grow(struct ct_producer *self)
{
    const uint64_t now_slots = self->mask + 1;
    if (now_slots >= ct_segment_ring_slots() || !ct_segment_may_allocate(CT_BOUND_MORE) || !ct_system_begin())
        return;
    if (!ct_process_lock()) {
        ct_system_end();
        return;
    }
    CT_TEST_POINT("thread.growing");
    struct slot_place *place = place_of(self->slot);
    const size_t old_bytes = place->ring_bytes, bytes = 2 * old_bytes;
    uint8_t *old = place->ring, *ring = NULL;
    /* Else it is an earlier segment's. */
    if (self->epoch == ct_process_epoch())
        ring = ct_segment_ring(self->index, bytes);
    if (ring) {
        self->ring = place->ring = ring;
        place->ring_bytes = bytes;
        self->mask = 2 * now_slots - 1;
        ct_lane_grow(self->lane, 2 * now_slots);
        CT_TEST_POINT("thread.grown");
        ct_bound_unmap(old, old_bytes);
    }
    ct_process_unlock();
    ct_system_end();
}

/* The first record of every owner: whose calls follow. False when there is no room for it. */
static bool introduce(struct ct_producer *self)
{
    const uint32_t tid = ct_thread_number();
    struct ct_thread_name name = { .name = "" };
    if (ct_system_begin()) {
        prctl(PR_GET_NAME, name.name, 0, 0, 0);
        ct_system_end();
    }
    atomic_store_explicit(&self->lane->tid, tid, memory_order_relaxed);
    atomic_fetch_add_explicit(&self->lane->tenancy, 1, memory_order_relaxed);
    CT_TEST_POINT("thread.tenancy_counted");
    for (int cause = 0; cause < CT_LOSS_COUNT; cause++)
        atomic_store_explicit(&self->lane->loss[cause].first, 0, memory_order_relaxed);

    self->idle = 0;
    atomic_signal_fence(memory_order_seq_cst);
    ct_lane_announce(self->lane, self->position);
    CT_TEST_POINT("thread.announced");
    const struct ct_record record = { .end = ct_now(), .kind = CT_KIND_THREAD, .slots = 2, .value = tid };
    const bool room = ct_record_room(self, record.slots);
    if (room) {
        ct_record_write(self, &record, &name, sizeof(name));
        ct_lane_announce(self->lane, self->position);
        ct_named_send(self);
    }
    ct_lane_publish(self->lane, self->position);
    atomic_signal_fence(memory_order_seq_cst);
    self->idle = 1;
    return room;
}

bool ct_thread_attach(uintptr_t place)
{
    if (ct_self->lane)
        return true;
    struct ct_segment *segment = ct_process_segment();
    struct ct_producer *self = segment ? take(segment, place) : NULL;
    if (!self)
        return false;
    self->depth = 0;
    self->act = 0;
    if (!self->idle) /* its last owner ended in the middle of a record */
        ct_record_take_over(self);
    ct_record_begin_lane(self);
    if (!introduce(self)) {
        atomic_store_explicit(&self->lane->owner, CT_LANE_FREE, memory_order_relaxed);
        set_owner(self, SLOT_FREE);
        atomic_fetch_add_explicit(&free_lanes, 1, memory_order_relaxed);
        return false;
    }
    CT_TEST_POINT("thread.introduced");
    arm_exit();
    own_lane = self->lane;
    own_place = place_of(self->slot);
    ct_self = self;
    CT_TEST_POINT("thread.attached");
    if (ct_wants_doorbell(self, self->lane, self->position))
        ct_record_wake(self);
    return ct_self->lane != NULL;
}
