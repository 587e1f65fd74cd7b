/* A lane has one thread's ring of records in shared memory, and the calls that the thread has open.
 *
 * A lane has one producer (the thread that owns it) and one consumer (the collector). The producer writes
 * `state`, `depth`, `open` and the slots. The consumer writes `wake` and `tail`. Except for `wake`, each
 * side's words are in cache lines of their own. Positions count slots since the lane's creation and never
 * wrap (2^63 slots last 292 years at 10^9 per second).
 *
 * A lane has rings of several sizes and uses one at a time. Each is eight times as long as the next shorter
 * one, up to the longest that the session allows. When its ring is full, the producer switches to the next
 * longer one, at any position. The contents of the previous ring stay there until they have been read. The
 * producer may switch to a ring, even back to an earlier one, once all slots of that ring have been given
 * back. `since` has the position where each ring was last begun. So a slot that has not been given back is in
 * the ring begun last at or before its position. Its index is its position modulo the ring's length, a power
 * of two. No record is moved.
 *
 * Memory for the longer rings is allocated when needed. The collector frees it by removing it from the file.
 * A producer that touches removed memory may be killed. Therefore the producer publishes the part that it may
 * write without a check, which is the slots of the ring `level` before `upto`. It changes that part only
 * while it holds that ring's `ring_lock`. The collector never removes memory of that part, or of slots that
 * have not been given back. It removes memory of a ring only while it holds the ring's lock. Before that, it
 * increments the count in `request`, so that the producer allocates its rings' memory again. The shortest
 * ring is never removed and has no lock.
 *
 * Memory order:
 *
 *  - A record is published by the release store of `state` in ct_lane_publish(), which pairs with the acquire
 *    load in ct_lane_state(). The producer's earlier writes (slots, function directory) are visible with it.
 *  - A slot is given back by the release store of `tail` in ct_lane_consume(), after the consumer's last read
 *    of the slot. The store pairs with the acquire load in ct_lane_tail().
 *  - `since` is stored before any later position is published, and only for a ring without unread slots. So a
 *    reader that loads `since` after the position can locate all earlier slots that have not been given back.
 *  - ct_lane_announce() announces that the producer may be reading its end time. It makes a relaxed store
 *    before the clock is read. The store may still be in the store buffer when the clock is read. A fence
 *    there would cost more than everything else in the call. Instead, the consumer's watermark is
 *    CT_PUBLISH_SLACK_NS in the past, longer than any store stays invisible. A lane that is not announcing
 *    after that will have no further record older than the watermark. If a machine ever breaks this rule, the
 *    row is late, and is stored, marked and counted.
 *  - On x86-64, the announcing store precedes the read of the counter, or both are in flight together. The
 *    store buffer drains by itself and in order. An interrupt drains it, so a preempted thread cannot hide a
 *    store.
 *  - On aarch64, the isb in ct_counter_read() ensures that this store is executed before the counter is read.
 *    The isb does not wait for the store buffer, which drains by itself, in any order. (The architecture
 *    guarantees that every store becomes visible in finite time. The buffer waits for cache lines, some
 *    hundred nanoseconds for each.) An exception does not drain the buffer, and need not. The kernel waits
 *    for the buffer with a dsb before another thread runs (__switch_to() in arch/arm64).
 *  - The consumer may also load `state` before it reads its own clock. The time between them is limited to
 *    the instructions in flight in a processor, and is negligible compared with the slack.
 *  - An open call's words are stored with release, after the store of `state` for the previous call in that
 *    place. If `state` and `depth` are unchanged after a copy, the copy is consistent (ct_lane_open()).
 *  - The producer reads `wake` and `sleeping` after publishing, without a fence. So a consumer about to sleep
 *    sets them, and checks the lanes once more after CT_PUBLISH_SLACK_NS, without resetting them. A producer
 *    that saw the consumer awake had published its record. After the slack, the stores of both are visible.
 *
 * tests/model/ has models of all these rules, which are searched for forbidden states. */
#ifndef CT_PROTO_LANE_H
#define CT_PROTO_LANE_H

#include "drop_count.h"
#include "names.h"
#include "open_call.h"
#include "record.h"
#include "rings.h"
#include "test_point.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { CT_LANE_HEADER_BYTES = 4096 };
#define CT_PUBLISH_SLACK_NS 200000

struct ct_loss {
    _Atomic uint64_t calls;
    _Atomic uint64_t first; /* ticks when the first and the last lost call of the current owner returned */
    _Atomic uint64_t last;
};
static_assert(sizeof(struct ct_loss) == 24, "ct_loss");

/* Whether a thread owns the lane. Only the owner may write it. */
enum ct_lane_owner { CT_LANE_FREE = 0, CT_LANE_OWNED = 1 };

struct ct_lane {
    /* The cache line that each of the producer's calls touches. It has room for two nested open calls. The
     * consumer writes only `wake` there, once per batch. */
    _Atomic uint64_t state; /* position << 1 | announcing */
    _Atomic uint32_t depth; /* calls entered and not yet returned; open[] has the outermost CT_OPEN_MAX */
    _Atomic uint32_t tid;   /* of the owner, or of the last owner if the lane is free */
    _Atomic uint64_t wake;  /* the position where the doorbell must be rung; 0: at each call */
    uint64_t pad0;
    struct ct_open open[CT_OPEN_MAX];
    _Atomic uint64_t since[CT_RINGS]; /* positions, all different except 0 */
    uint8_t pad1[48];

    /* The consumer's line. */
    _Atomic uint64_t tail;      /* slots before this one may be written again */
    _Atomic uint64_t loss_seen; /* sum of loss[].calls that the database has */
    _Atomic uint32_t request;   /* number of removals << 3 | number of the ring that suffices */
    uint8_t pad2[44];

    /* The producer's cache line for words that a recorded call does not touch. */
    _Atomic uint32_t owner;   /* enum ct_lane_owner */
    _Atomic uint32_t tenancy; /* counts owners */
    _Atomic uint64_t skipped; /* calls counted in `drops` and in no `loss`; written after `drops` */
    struct ct_loss loss[CT_LANE_LOSS_COUNT];

    /* The part of the rings that the producer may write without a check; see above. */
    _Atomic uint8_t ring_lock[CT_RINGS]; /* enum ct_ring_lock; the shortest ring has none */
    _Atomic uint16_t level;              /* number of the ring in use, and CT_LEVEL_REFUSED */
    _Atomic uint64_t upto;               /* position; not meaningful while the shortest ring is in use */
    struct ct_drop_count drops[CT_LANE_DROPS];
};
static_assert(offsetof(struct ct_lane, open) == 32, "open calls share the producer's line");
static_assert(offsetof(struct ct_lane, tail) % 64 == 0, "consumer's line");
static_assert(offsetof(struct ct_lane, owner) % 64 == 0, "cold line");
static_assert(offsetof(struct ct_lane, drops) % 64 == 0, "two counters a line");
static_assert(sizeof(struct ct_lane) <= CT_LANE_HEADER_BYTES, "ct_lane");

/* ---- producer ---- */

static inline uint64_t ct_lane_position(struct ct_lane *lane)
{
    return atomic_load_explicit(&lane->state, memory_order_relaxed) >> 1;
}

static inline void ct_lane_announce(struct ct_lane *lane, uint64_t position)
{
    atomic_store_explicit(&lane->state, position << 1 | 1, memory_order_relaxed);
    /* Keeps the compiler from reading the clock first. The slack covers reordering by the processor. */
    atomic_signal_fence(memory_order_seq_cst);
}

/* Publishes every slot before `position`. Pairs with the acquire in ct_lane_state(). */
static inline void ct_lane_publish(struct ct_lane *lane, uint64_t position)
{
    atomic_store_explicit(&lane->state, position << 1, memory_order_release);
}

/* Begins the ring `level` at `position`. The ring must have no unread slots, and no other ring may have been
 * begun at that position. Pairs with the acquires in ct_lane_since() and of the first later position. */
static inline void ct_lane_switch(struct ct_lane *lane, uint32_t level, uint64_t position)
{
    atomic_store_explicit(&lane->since[level], position, memory_order_release);
}

/* Publishes the ring in use and the part of it that may be written. Requires the ring's lock, unless it is
 * the shortest ring. Pairs with the acquire in ct_lane_window(), after which `since` is visible. */
static inline void ct_lane_show(struct ct_lane *lane, uint32_t level, uint64_t upto)
{
    atomic_store_explicit(&lane->upto, upto, memory_order_relaxed);
    atomic_store_explicit(&lane->level, (uint16_t)level, memory_order_release);
}

/* Slots before the result are no longer read. Pairs with the release in ct_lane_consume(). */
static inline uint64_t ct_lane_tail(struct ct_lane *lane)
{
    return atomic_load_explicit(&lane->tail, memory_order_acquire);
}

/* Call this after publishing. A collector about to sleep sets `wake`, then checks the lane once more. */
static inline uint64_t ct_lane_wake(struct ct_lane *lane)
{
    return atomic_load_explicit(&lane->wake, memory_order_relaxed);
}

/* Notes that the doorbell was rung for the position `wake`. Later calls need not ring until the collector
 * sets another position. Not called if the collector was awake and may have checked too early. The next call
 * then tries again. */
static inline void ct_lane_rung(struct ct_lane *lane, uint64_t wake)
{
    atomic_compare_exchange_strong_explicit(&lane->wake, &wake, UINT64_MAX, memory_order_relaxed,
                                            memory_order_relaxed);
}

/* Stores the open call before the depth that includes it, which pairs with the acquire in ct_lane_depth().
 * Each word is stored after the previous call in its place has been published, which pairs with the fence in
 * ct_lane_open(). On x86-64, every store is a release store at no cost. */
static inline void ct_lane_enter(struct ct_lane *lane, uint32_t depth, uint32_t function, uint64_t start)
{
    if (depth < CT_OPEN_MAX) {
        atomic_store_explicit(&lane->open[depth].function, function, memory_order_release);
        atomic_store_explicit(&lane->open[depth].start, start, memory_order_release);
    }
    CT_TEST_POINT("lane.open_written");
    atomic_store_explicit(&lane->depth, depth + 1, memory_order_release);
}

static inline void ct_lane_leave(struct ct_lane *lane, uint32_t depth)
{
    atomic_store_explicit(&lane->depth, depth, memory_order_release);
}

/* ---- consumer ---- */

struct ct_lane_state {
    uint64_t position;
    bool announcing;
};

/* Pairs with the release in ct_lane_publish(). */
static inline struct ct_lane_state ct_lane_state(struct ct_lane *lane)
{
    const uint64_t state = atomic_load_explicit(&lane->state, memory_order_acquire);
    return (struct ct_lane_state){ .position = state >> 1, .announcing = state & 1 };
}

/* Copies the positions where the rings were begun. Call this after the lane's position has been loaded. */
static inline void ct_lane_since(struct ct_lane *lane, uint64_t since[CT_RINGS])
{
    for (int level = 0; level < CT_RINGS; level++)
        since[level] = atomic_load_explicit(&lane->since[level], memory_order_acquire);
}

struct ct_lane_window {
    uint64_t upto;
    uint32_t level, refused;
};

/* Pairs with the release in ct_lane_show(). While the caller holds a ring's lock, the values for that ring
 * are consistent unless the producer switches to another ring. */
static inline struct ct_lane_window ct_lane_window(struct ct_lane *lane)
{
    const uint32_t level = atomic_load_explicit(&lane->level, memory_order_acquire);
    const uint64_t upto = atomic_load_explicit(&lane->upto, memory_order_relaxed);
    return (struct ct_lane_window){ upto, level & (CT_LEVEL_REFUSED - 1), level & CT_LEVEL_REFUSED };
}

/* Pairs with the acquire in ct_lane_tail(). */
static inline void ct_lane_consume(struct ct_lane *lane, uint64_t position)
{
    atomic_store_explicit(&lane->tail, position, memory_order_release);
}

static inline uint32_t ct_lane_depth(struct ct_lane *lane)
{
    return atomic_load_explicit(&lane->depth, memory_order_acquire);
}

/* Copies the outermost `depth` open calls, at most CT_OPEN_MAX. The copy is consistent if ct_lane_state() and
 * ct_lane_depth() return the same values before and after it. A reader that copies a word of a later call
 * also sees that the previous call in that place has been published. */
static inline void ct_lane_open(const struct ct_lane *lane, uint32_t depth, struct ct_open_call *calls)
{
    for (uint32_t i = 0; i < depth; i++) {
        calls[i].start = atomic_load_explicit(&lane->open[i].start, memory_order_relaxed);
        calls[i].function = atomic_load_explicit(&lane->open[i].function, memory_order_relaxed);
    }
    atomic_thread_fence(memory_order_acquire);
}

#endif
