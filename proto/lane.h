/* A lane contains one thread's ring of records in shared memory, and the thread's open calls.
 *
 * A lane has one producer (the thread that owns it) and one consumer (the collector). The producer writes
 * `state`, `depth`, `open` and the slots. The consumer writes `wake` and `tail`. Except for `wake`, each
 * side's words are in separate cache lines. Positions count slots since the lane was created and never wrap
 * (2^63 slots last 292 years at 10^9 per second).
 *
 * A lane has rings of several sizes, and uses one ring at a time. Each ring is eight times as long as the
 * next shorter one, up to the longest that the session allows. When the current ring is full, the producer
 * switches to the next longer ring, at any position. The contents of the previous ring stay in place until
 * they have been read. The producer may switch to a ring, even to a ring used earlier, once all of its slots
 * have been given back. `since` contains the position at which each ring was last begun. A slot that has not
 * been given back is therefore in the last ring begun at or before its position. A slot's index is its
 * position modulo the ring's length, which is a power of two. No record is moved.
 *
 * Memory for the longer rings is allocated when needed. The collector frees a ring's memory by removing it
 * from the file. A producer that accesses removed memory may be killed. It therefore publishes the part that
 * it may write without a check: the slots of ring `level` before `upto`. It changes the published part only
 * while it holds the ring's `ring_lock`. The collector never removes the memory of the published part, or of
 * slots that have not been given back. It removes a ring's memory only under the ring's lock, after
 * incrementing the count in `request`, which makes the producer allocate its rings' memory again. The
 * shortest ring is never removed and has no lock.
 *
 * Memory order:
 *
 *  - A record is published by the release store of `state` in ct_lane_publish(), which pairs with the acquire
 *    load in ct_lane_state(). The store also makes earlier writes (slots, function directory) visible.
 *  - A slot is given back by the release store of `tail` in ct_lane_consume(), after the consumer has last
 *    read the slot. The store of `tail` pairs with the acquire load in ct_lane_tail().
 *  - `since` is stored before any later position is published, and only for a ring without unread slots. A
 *    reader that loads `since` after the position can thus locate all earlier slots not yet given back.
 *  - ct_lane_announce() announces that the producer may be reading its end time, with a relaxed store before
 *    the clock is read. The announcing store may still be in the store buffer when the clock is read. A fence
 *    between the store and the clock read would cost more than everything else in the call. Instead, the
 *    consumer's watermark is CT_PUBLISH_SLACK_NS in the past, longer than any store stays invisible. A lane
 *    that is not announcing after the slack will have no further record older than the watermark. If a
 *    machine ever breaks this rule, the record is late, and is stored, marked and counted.
 *  - On x86-64, the announcing store precedes the counter read, or both are in flight together. The store
 *    buffer drains by itself and in order. An interrupt drains the buffer, so preemption hides no store.
 *  - On aarch64, the isb in ct_counter_read() ensures that the announcing store is executed before the
 *    counter is read. The isb does not wait for the store buffer, which drains by itself, in any order. (The
 *    architecture guarantees that every store becomes visible in finite time. The buffer waits a few hundred
 *    nanoseconds for each cache line.) An exception does not drain the store buffer, and need not, since the
 *    kernel waits for the buffer with a dsb before another thread runs (__switch_to() in arch/arm64).
 *  - The consumer may also load `state` before it reads its own clock. The time between the two reads is
 *    limited by how many instructions a processor has in flight, and is negligible compared with the slack.
 *  - An open call's words are stored with release, after the store of `state` for the previous call in the
 *    same place. If `state` and `depth` are unchanged after a copy, the copy is consistent (ct_lane_open()).
 *  - The producer reads `wake` and `sleeping` after publishing, without a fence. A consumer that is about to
 *    sleep therefore sets `wake` and `sleeping`, and checks the lanes once more after CT_PUBLISH_SLACK_NS,
 *    without resetting them. A producer that saw the consumer awake has already published its record, and
 *    after the slack, the stores of both sides are visible.
 *
 * tests/model/ contains models of all these rules, and searches them for forbidden states. */
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

enum { CT_LANE_HEADER_BYTES = 4096, CT_PUBLISH_SLACK_NS = 200000 };

struct ct_loss {
    _Atomic uint64_t calls;
    _Atomic uint64_t first; /* ticks when the current owner's first and last lost calls returned */
    _Atomic uint64_t last;
};
static_assert(sizeof(struct ct_loss) == 24, "ct_loss");

/* Whether a thread owns the lane. On the producer's side, only the owner may write to a lane. */
enum ct_lane_owner { CT_LANE_FREE = 0, CT_LANE_OWNED = 1 };

struct ct_lane {
    /* The cache line touched by each of the producer's calls. It has room for two nested open calls. The
     * consumer writes only `wake` in this line, once per batch. */
    _Atomic uint64_t state; /* position << 1 | announcing */
    _Atomic uint32_t depth; /* calls entered and not yet returned; open[] has the outermost CT_OPEN_MAX */
    _Atomic uint32_t tid;   /* the owner's thread ID, or the last owner's if the lane is free */
    _Atomic uint64_t wake;  /* the position where the doorbell must be rung; 0: at every call */
    uint64_t pad0;
    struct ct_open open[CT_OPEN_MAX];
    _Atomic uint64_t since[CT_RINGS]; /* positions, all different except 0 */
    uint8_t pad1[48];

    /* The consumer's line. */
    _Atomic uint64_t tail;      /* slots before this position may be written again */
    _Atomic uint64_t loss_seen; /* sum of loss[].calls that is in the database */
    _Atomic uint32_t request;   /* number of removals << 3 | number of the ring that suffices */
    uint8_t pad2[44];

    /* The producer's cache line for words not touched by recorded calls. */
    _Atomic uint32_t owner;   /* enum ct_lane_owner */
    _Atomic uint32_t tenancy; /* counts owners */
    _Atomic uint64_t skipped; /* calls counted in `drops` but not in any `loss`; written after `drops` */
    struct ct_loss loss[CT_LANE_LOSS_COUNT];

    /* The part of the rings that the producer may write without a check; see above. */
    _Atomic uint8_t ring_lock[CT_RINGS]; /* enum ct_ring_lock; the shortest ring has no lock */
    _Atomic uint16_t level;              /* number of the current ring, with the bit CT_LEVEL_REFUSED */
    _Atomic uint64_t upto;               /* a position; meaningless while the shortest ring is in use */
    uint8_t pad3[40];
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

/* Begins ring `level` at `position`. No other ring may have begun there, and this ring must have no unread
 * slots. Pairs with the acquire in ct_lane_since() and the acquire of the first later position. */
static inline void ct_lane_switch(struct ct_lane *lane, uint32_t level, uint64_t position)
{
    atomic_store_explicit(&lane->since[level], position, memory_order_release);
}

/* Publishes the current ring and the part of it that may be written to. Requires the ring's lock, unless it
 * is the shortest ring. Pairs with the acquire in ct_lane_window(), after which `since` is visible. */
static inline void ct_lane_show(struct ct_lane *lane, uint32_t level, uint64_t upto)
{
    atomic_store_explicit(&lane->upto, upto, memory_order_relaxed);
    atomic_store_explicit(&lane->level, (uint16_t)level, memory_order_release);
}

/* Slots before the returned position are no longer read. Pairs with the release in ct_lane_consume(). */
static inline uint64_t ct_lane_tail(struct ct_lane *lane)
{
    return atomic_load_explicit(&lane->tail, memory_order_acquire);
}

/* Must be called after publishing. A collector about to sleep sets `wake`, then checks the lane once more. */
static inline uint64_t ct_lane_wake(struct ct_lane *lane)
{
    return atomic_load_explicit(&lane->wake, memory_order_relaxed);
}

/* Notes that the doorbell was rung for position `wake`. Later calls need not ring until the collector sets
 * another position. Not called if the collector was awake, since it may then have checked too early, and the
 * next call must try again. */
static inline void ct_lane_rung(struct ct_lane *lane, uint64_t wake)
{
    atomic_compare_exchange_strong_explicit(&lane->wake, &wake, UINT64_MAX, memory_order_relaxed,
                                            memory_order_relaxed);
}

/* Stores the open call before the depth that includes it, which pairs with the acquire in ct_lane_depth().
 * Each word is stored after the previous call in the same place has been published, which pairs with the
 * fence in ct_lane_open(). On x86-64, every store is a release store at no extra cost. */
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

/* Copies the positions at which the rings were begun. Must be called after loading the lane's position. */
static inline void ct_lane_since(struct ct_lane *lane, uint64_t since[CT_RINGS])
{
    for (int level = 0; level < CT_RINGS; level++)
        since[level] = atomic_load_explicit(&lane->since[level], memory_order_acquire);
}

struct ct_lane_window {
    uint64_t upto;
    uint32_t level, refused;
};

/* Pairs with the release in ct_lane_show(). While the caller holds a ring's lock, the values for the ring are
 * consistent unless the producer switches to another ring. */
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
 * ct_lane_depth() return the same values before and after copying. A reader that copies a word of a later
 * call also sees that the previous call in the same place has been published. */
static inline void ct_lane_open(const struct ct_lane *lane, uint32_t depth, struct ct_open_call *calls)
{
    for (uint32_t i = 0; i < depth; i++) {
        calls[i].start = atomic_load_explicit(&lane->open[i].start, memory_order_relaxed);
        calls[i].function = atomic_load_explicit(&lane->open[i].function, memory_order_relaxed);
    }
    atomic_thread_fence(memory_order_acquire);
}

#endif
