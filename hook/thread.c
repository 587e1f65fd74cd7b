/* A thread's lane: taken at its first call, given back at its exit, then taken by the next thread. Called by
 * the slow way of a call. */
#include "hook.h"
#include "lock.h"
#include "named.h"
#include "system.h"
#include "test_point.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

struct ct_producer ct_dormant, ct_unlaned;
__thread struct ct_producer *ct_self = &ct_dormant;
/* Of ct_self, in memory that a fork's child has, too. */
static __thread struct ct_lane *own_lane;

static struct ct_producer *producers; /* of the current segment, CT_LANES_MAX of them */
enum { PRODUCERS_BYTES = sizeof(struct ct_producer) * CT_LANES_MAX };
static uint32_t producers_epoch;
static pthread_key_t exit_key;
static _Atomic uint32_t exit_key_state; /* 0 none, 1 being made, 2 ready, 3 not to be had */

/* Runs at thread exit. Calls that come later (from other keys' destructors) take a lane anew, and this
 * destructor runs again. */
static void give_back(void *unused)
{
    (void)unused;
    struct ct_producer *self = ct_self;
    ct_named_thread_exit();
    ct_self = &ct_dormant;
    ct_range_thread_exit();
    if (!self->lane || self->epoch != ct_process_epoch())
        return;
    CT_TEST_POINT("thread.leaving");
    self->depth = 0;
    self->limit = 0;
    /* Asynchronous cancellation may have come behind the publishing of a record, or before it. */
    if (self->position < ct_lane_position(self->lane))
        self->position = ct_lane_position(self->lane);
    ct_lane_publish(self->lane, self->position);
    ct_lane_leave(self->lane, 0);
    CT_TEST_POINT("thread.emptied");
    /* Pairs with the acquire of the compare-and-swap in take_free(). */
    atomic_store_explicit(&self->lane->owner, CT_LANE_FREE, memory_order_release);
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

bool ct_thread_producers_create(void)
{
    void *memory = mmap(NULL, PRODUCERS_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return false;
#ifdef MADV_WIPEONFORK
    /* Linux 4.14; before it the atfork handler in process.c is all there is. */
    madvise(memory, PRODUCERS_BYTES, MADV_WIPEONFORK);
#endif
    CT_TEST_POINT("thread.producers_made");
    producers = memory;
    producers_epoch = ct_process_epoch();
    return true;
}

void ct_thread_producers_abandon(void)
{
    if (producers_epoch != ct_process_epoch())
        return;
    for (uint32_t i = 0; i < CT_LANES_MAX && producers[i].lane; i++) {
        const size_t bytes = CT_LANE_HEADER_BYTES + (producers[i].mask + 1) * CT_SLOT_BYTES;
        mmap(producers[i].lane, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        CT_TEST_POINT("thread.abandoned");
    }
}

void ct_thread_forget(void)
{
    ct_self->limit = 0; /* calls that are under way go the slow way out */
    ct_self = &ct_dormant;
}

void ct_thread_redirect(struct ct_segment *segment)
{
    struct ct_producer *self = ct_self;
    if (self == &ct_dormant || self->lane || !own_lane)
        return;
    void *memory = mmap(own_lane, segment->lane_stride, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (memory == MAP_FAILED)
        return;
    self->segment = segment;
    self->lane = memory;
    self->ring = (uint8_t *)memory + CT_LANE_HEADER_BYTES;
    atomic_store_explicit(&self->lane->wake, UINT64_MAX, memory_order_relaxed);
}

/* A lane that its thread gave back: with half its ring free, and no loss that the collector has not seen,
 * since that would pass to the new owner. */
static struct ct_producer *take_free(struct ct_segment *segment)
{
    const uint32_t lanes = atomic_load_explicit(&segment->lanes, memory_order_acquire);
    for (uint32_t i = 0; i < lanes; i++) {
        struct ct_producer *producer = &producers[i];
        struct ct_lane *lane = producer->lane;
        if (!lane || atomic_load_explicit(&lane->owner, memory_order_relaxed) != CT_LANE_FREE)
            continue;
        CT_TEST_POINT("thread.found_free");
        uint32_t owner = CT_LANE_FREE;
        /* Pairs with the release in give_back(): the last owner's private words are ours to read. */
        if (!atomic_compare_exchange_strong_explicit(&lane->owner, &owner, CT_LANE_OWNED,
                                                     memory_order_acquire, memory_order_relaxed))
            continue;
        CT_TEST_POINT("thread.retaken");
        uint64_t lost = 0;
        for (int cause = 0; cause < CT_LOSS_COUNT; cause++)
            lost += atomic_load_explicit(&lane->loss[cause].calls, memory_order_relaxed);
        const uint64_t used = producer->position - ct_lane_tail(lane);
        if (used <= (producer->mask + 1) / 2 &&
            lost == atomic_load_explicit(&lane->loss_seen, memory_order_acquire))
            return producer;
        atomic_store_explicit(&lane->owner, CT_LANE_FREE, memory_order_release);
        CT_TEST_POINT("thread.refused");
    }
    return NULL;
}

static struct ct_producer *take_new(struct ct_segment *segment)
{
    if (!ct_process_may_allocate() || !ct_process_lock())
        return NULL;
    struct ct_producer *producer = NULL;
    const uint32_t index = atomic_load_explicit(&segment->lanes, memory_order_relaxed);
    struct ct_lane *lane = NULL;
    if (segment == ct_process_current() && index < segment->lane_slots)
        lane = ct_process_map_lane(index);
    if (lane) {
        CT_TEST_POINT("thread.mapped");
        producer = &producers[index];
        *producer = (struct ct_producer){
            .lane = lane,
            .ring = (uint8_t *)lane + CT_LANE_HEADER_BYTES,
            .mask = segment->ring_bytes / CT_SLOT_BYTES - 1,
            .allocated_slots = CT_CHUNK_BYTES / CT_SLOT_BYTES,
            .limit = CT_CHUNK_BYTES / CT_SLOT_BYTES,
            .idle = 1,
            .index = index,
            .epoch = ct_process_epoch(),
            .segment = segment,
        };
        atomic_store_explicit(&lane->owner, CT_LANE_OWNED, memory_order_relaxed);
        CT_TEST_POINT("thread.owned");
        /* Pairs with the acquire in take_free() and in the collector. */
        atomic_store_explicit(&segment->lanes, index + 1, memory_order_release);
        CT_TEST_POINT("thread.lane_published");
    }
    ct_process_unlock();
    return producer;
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

bool ct_thread_attach(void)
{
    if (ct_self->lane)
        return true;
    struct ct_segment *segment = ct_process_segment();
    if (!segment || producers_epoch != ct_process_epoch())
        return false;
    struct ct_producer *self = take_free(segment);
    if (!self)
        self = take_new(segment);
    if (!self)
        return false;
    self->depth = 0;
    self->act = 0;
    if (!self->idle) /* its last owner ended in the middle of a record */
        ct_record_take_over(self);
    if (!introduce(self)) {
        atomic_store_explicit(&self->lane->owner, CT_LANE_FREE, memory_order_release);
        return false;
    }
    CT_TEST_POINT("thread.introduced");
    arm_exit();
    own_lane = self->lane;
    ct_self = self;
    CT_TEST_POINT("thread.attached");
    if (ct_wants_doorbell(self, self->lane, self->position))
        ct_record_wake(self);
    return ct_self->lane != NULL;
}
