#include "thread.h"

#include "current.h"
#include "lock.h"
#include "loss.h"
#include "producer_pool.h"
#include "ring.h"
#include "stack.h"
#include "symbol.h"
#include "system.h"
#include "test_point.h"

#include <pthread.h>
#include <sys/prctl.h>

/* Copies of ct_self's map and lane, in memory that is not wiped on fork. */
static __thread struct ct_ring_map *own_map;
static __thread struct ct_lane *own_lane;
static __thread struct ct_producer *left; /* producers that this thread has dropped */

/* If no lane was available in the segment of epoch `next_take_epoch`, threads try again at `next_take_ns`. */
static _Atomic uint64_t next_take_ns; /* CLOCK_MONOTONIC_COARSE */
static _Atomic uint32_t next_take_epoch;

/* ---- dropping a lane ---- */

static pthread_key_t exit_key;
static _Atomic uint32_t exit_key_state; /* 0: none, 1: being created, 2: ready, 3: unavailable */
static __thread bool is_unwatched;      /* the thread has no value for the key yet */
static void (*_Atomic ends[CT_THREAD_ENDS])(void);

static void run_end(enum ct_thread_end which)
{
    void (*end)(void) = atomic_load_explicit(&ends[which], memory_order_relaxed);
    if (end)
        end();
}

static void give_back_lane(struct ct_producer *self)
{
    CT_TEST_POINT("thread.leaving");
    self->depth = 0;
    self->limit = 0;
    if (self->epoch != ct_process_epoch()) {
        ct_producer_set_owner(self, CT_PRODUCER_SPARE);
        return;
    }
    /* Asynchronous cancellation may have occurred before or after a record was published. */
    self->position = ct_record_published(self);
    ct_lane_publish(self->lane, self->position);
    ct_lane_leave(self->lane, 0);
    CT_TEST_POINT("thread.emptied");
    ct_producer_give_back(self);
    CT_TEST_POINT("thread.given_back");
}

/* Runs at thread exit. If the destructors of other keys make calls later, the thread takes another lane, and
 * this destructor runs again. */
static void give_back(void *unused)
{
    (void)unused;
    struct ct_producer *self = ct_self;
    run_end(CT_THREAD_NAME);
    ct_self = &ct_dormant;
    own_map = NULL;
    run_end(CT_THREAD_RANGES);
    /* The dropped producers can be reused, because the calls that were open in them have ended. */
    for (struct ct_producer *next; left; left = next) {
        next = left->next_left;
        ct_producer_set_owner(left, CT_PRODUCER_SPARE);
    }
    if (self->lane)
        give_back_lane(self);
    run_end(CT_THREAD_GPU);
}

static void create_exit_key(void)
{
    uint32_t none = 0;
    if (atomic_compare_exchange_strong(&exit_key_state, &none, 1))
        atomic_store(&exit_key_state, pthread_key_create(&exit_key, give_back) == 0 ? 2 : 3);
}

/* Creates the key before the program creates any, so that its number is low. */
__attribute__((constructor)) static void begin(void)
{
    if (!ct_symbol_is_visitor())
        create_exit_key();
}

/* For each thread, the C library allocates memory for the values of all but the first keys. Leaves this to a
 * later call if the thread may not allocate memory now. */
static void watch_exit(void)
{
    enum { FIRST_KEYS = 32 }; /* glibc's PTHREAD_KEY_2NDLEVEL_SIZE */
    create_exit_key();
    if (atomic_load(&exit_key_state) != 2)
        return;
    is_unwatched = exit_key >= FIRST_KEYS && !ct_stack_is_plain();
    if (!is_unwatched)
        pthread_setspecific(exit_key, &exit_key);
}

void ct_thread_watch_again(void)
{
    if (is_unwatched)
        watch_exit();
}

void ct_thread_watch_end(enum ct_thread_end which, void (*end)(void))
{
    atomic_store_explicit(&ends[which], end, memory_order_relaxed);
    watch_exit();
}

static void leave(void)
{
    ct_self->limit = 0; /* open calls return through the slow path */
    ct_self = &ct_dormant;
    own_map = NULL;
}

void ct_thread_forget(void)
{
    leave();
    left = NULL;
}

/* Returns the stack address of the outermost open call. Ranges have no address (range.c). */
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
    leave();
    ct_ring_map_drop(ct_ring_map(self));
    self->around = outermost(self);
    self->next_left = left;
    left = self;
    ct_producer_set_owner(self, CT_PRODUCER_LEFT);
}

/* Counts the thread's open calls as lost, since their ends will not be recorded. Ranges have no frame, and
 * are counted when they end. */
static void lose_open_calls(struct ct_producer *self)
{
    struct ct_open_call calls[CT_OPEN_MAX];
    const uint32_t depth = self->depth < CT_OPEN_MAX ? self->depth : CT_OPEN_MAX;
    ct_lane_open(self->lane, depth, calls);
    ct_lane_leave(self->lane, 0);
    for (uint32_t i = 0; i < depth; i++) {
        if (calls[i].start && (intptr_t)self->frames[i] > 0)
            ct_record_lose_unlaned(self->segment, (uint16_t)calls[i].function, calls[i].start, ct_now());
    }
}

void ct_thread_withdraw(uintptr_t frame)
{
    struct ct_producer *self = ct_self;
    if (!self->lane || ct_producer_is_stale(self))
        return;
    const bool is_whole = self->idle && ct_depth_around(self, frame) == 0;
    leave();
    if (is_whole)
        give_back_lane(self);
    else if (self->idle && self->epoch == ct_process_epoch())
        lose_open_calls(self);
}

/* Marks this thread's dropped producers as spare if a call at `frame` proves that the calls open in them have
 * been left. */
static void release_left(uintptr_t frame)
{
    for (struct ct_producer **link = &left; *link;) {
        struct ct_producer *producer = *link;
        if (producer->around && !(frame && ct_stack_left(producer->around, frame))) {
            link = &producer->next_left;
            continue;
        }
        *link = producer->next_left;
        ct_producer_set_owner(producer, CT_PRODUCER_SPARE);
    }
}

void ct_thread_redirect(void)
{
    ct_producers_redirect(ct_self, ct_self == &ct_dormant ? NULL : own_map, own_lane);
}

/* ---- taking ---- */

/* True for TAKE_INTERVAL_NS after a thread has failed to find a lane. */
static bool is_too_soon(void)
{
    return ct_coarse_ns() < atomic_load_explicit(&next_take_ns, memory_order_relaxed) &&
           atomic_load_explicit(&next_take_epoch, memory_order_relaxed) == ct_process_epoch();
}

static void put_off(void)
{
    enum { TAKE_INTERVAL_NS = 10000000 };
    atomic_store_explicit(&next_take_epoch, ct_process_epoch(), memory_order_relaxed);
    atomic_store_explicit(&next_take_ns, ct_coarse_ns() + TAKE_INTERVAL_NS, memory_order_relaxed);
}

static struct ct_producer *take(struct ct_segment *segment, uintptr_t frame)
{
    if (is_too_soon() || !ct_producer_may_take() || !ct_process_lock())
        return NULL;
    struct ct_producer *producer = NULL;
    if (segment == ct_process_current()) {
        release_left(frame);
        producer = ct_producer_take_free();
        if (!producer && ct_system_begin()) {
            producer = ct_producer_take_new(segment);
            ct_system_end();
        }
        if (!producer)
            put_off();
    }
    ct_process_unlock();
    return producer;
}

static void (*_Atomic send_on_take)(struct ct_producer *producer);

void ct_thread_on_take(void (*send)(struct ct_producer *producer))
{
    atomic_store_explicit(&send_on_take, send, memory_order_relaxed);
}

static struct ct_thread_identity own_identity(void)
{
    struct ct_thread_identity own = { .tid = ct_thread_number() };
    if (ct_system_begin()) {
        prctl(PR_GET_NAME, own.name.name, 0, 0, 0);
        ct_system_end();
    }
    return own;
}

/* Writes the first record of a lane's new owner, which identifies the thread. Returns false if there is no
 * room. */
static bool introduce(struct ct_producer *self, const struct ct_thread_identity *owner)
{
    atomic_store_explicit(&self->lane->tid, owner->tid, memory_order_relaxed);
    atomic_fetch_add_explicit(&self->lane->tenancy, 1, memory_order_relaxed);
    CT_TEST_POINT("thread.tenancy_counted");
    for (int cause = 0; cause < CT_LANE_LOSS_COUNT; cause++)
        atomic_store_explicit(&self->lane->loss[cause].first, 0, memory_order_relaxed);

    ct_record_hold(self, 0);
    CT_TEST_POINT("thread.announced");
    struct ct_record record = { .end = ct_now(), .kind = CT_KIND_THREAD, .value = owner->tid };
    ct_record_measure(&record, sizeof(owner->name));
    const bool room = ct_record_room(self, record.slots);
    if (room) {
        ct_record_write(self, &record, &owner->name, sizeof(owner->name));
        ct_lane_announce(self->lane, self->position);
        void (*send)(struct ct_producer *) = atomic_load_explicit(&send_on_take, memory_order_relaxed);
        if (send)
            send(self);
    }
    ct_record_release(self);
    return room;
}

/* Takes a lane for `owner`, or for the calling thread if `owner` is NULL. Returns NULL if no lane is
 * available, or if the lane has no room. */
static struct ct_producer *take_for(struct ct_segment *segment, uintptr_t frame,
                                    const struct ct_thread_identity *owner)
{
    struct ct_producer *self = take(segment, frame);
    if (!self)
        return NULL;
    self->depth = 0;
    self->event = self->writer = 0;
    if (!self->idle) /* the last owner exited in the middle of a record */
        ct_record_take_over(self);
    ct_record_begin_lane(self);
    const struct ct_thread_identity identity = owner ? *owner : own_identity();
    if (introduce(self, &identity))
        return self;
    ct_producer_give_back(self);
    return NULL;
}

bool ct_thread_take(struct ct_segment *segment, uintptr_t frame)
{
    struct ct_producer *self = take_for(segment, frame, NULL);
    if (!self)
        return false;
    CT_TEST_POINT("thread.introduced");
    watch_exit();
    own_lane = self->lane;
    own_map = ct_ring_map(self);
    ct_self = self;
    CT_TEST_POINT("thread.attached");
    return true;
}

struct ct_producer *ct_thread_take_for(struct ct_segment *segment, const struct ct_thread_identity *owner)
{
    return take_for(segment, 0, owner);
}

void ct_thread_give_back_for(struct ct_producer *producer)
{
    producer->depth = 0;
    producer->limit = 0;
    if (producer->epoch != ct_process_epoch()) {
        ct_producer_set_owner(producer, CT_PRODUCER_SPARE);
        return;
    }
    ct_lane_leave(producer->lane, 0);
    ct_producer_give_back(producer);
}
