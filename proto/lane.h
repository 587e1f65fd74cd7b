/* A lane: one thread's ring of records in shared memory, and the calls that thread is inside of.
 *
 * One producer (the thread that owns the lane), one consumer (the collector). The producer writes `state`,
 * `depth`, `open` and the slots; the consumer writes `tail` and `wake`; but for `wake`, each side's words
 * have cache lines of their own. Positions count slots from the lane's creation and never wrap (2^63 slots
 * are 10^4 years at 10^9 a second).
 *
 * A lane has rings of several sizes, and is in one of them at a time: each is eight times as long as the one
 * before, up to the longest that the session allows. When its ring is full the producer turns to the next
 * longer one, at whatever position; what stands in the other stays there until it was read. A ring may be
 * turned to, also back, once all of its slots were given back. `since` says from which position on a ring was
 * in use last, so that each slot that was not given back is in the ring that was begun last before it, at its
 * position modulo the ring's length, a power of two. No record is moved.
 *
 * The memory of the longer rings is taken when it is needed and given back by the collector, who takes it out
 * of the file. A producer that touched what is not there could die of it. So the producer shows what it may
 * write without asking, the slots of the ring `level` before `upto`, and shows other ones only while it holds
 * that ring's `gate`; the collector takes nothing of it away, nor what it has not given back, and takes away
 * of a ring only while it holds its gate. It counts `ask` before it does, by which the producer knows that
 * the memory of its rings has to be asked for again. The shortest ring is never taken away: it has no gate.
 *
 * Memory order, all of it:
 *
 *  - A record is published by the release store of `state` in ct_lane_publish(); it pairs with the acquire
 *    load in ct_lane_state(). What the producer wrote before (slots, function directory) is visible with it.
 *  - A slot is given back by the release store of `tail` in ct_lane_consume(), after the consumer's last
 *    read of the slot; it pairs with the acquire load in ct_lane_tail().
 *  - `since` is stored before any position behind it is published, and for a ring of which nothing is left to
 *    be read. Whoever loads it behind the position finds each slot before that which was not given back.
 *  - ct_lane_announce() says "I may be reading my end time": a relaxed store before the clock is read. The
 *    store may still sit in the store buffer when the clock is read, and a fence there would cost more than
 *    the rest of the call. The consumer makes up for it: it takes as watermark a time that lies
 *    CT_PUBLISH_SLACK_NS in the past, longer than any store stays unseen. A lane seen silent after that has
 *    no record older than the watermark to come. Should a machine ever break this, the row is late: stored,
 *    marked and counted. Why no store stays unseen for long:
 *    On x86-64 the store precedes the read of the counter or is still in flight with it; the buffer drains by
 *    itself, in order, and an interrupt drains it, so that a preempted thread cannot hide one.
 *    On aarch64 the counter might be read before the store is so much as made; the isb in ct_counter_read()
 *    sees to it that the store was made. It does not wait for the buffer, which need not drain in order, but
 *    drains by itself (the architecture promises that every store is seen in finite time; what it waits for
 *    is a cache line, some hundred nanoseconds each). An exception does not drain it, and need not: that goes
 *    on under the kernel, which waits for it with a dsb before another thread runs (__switch_to() of
 *    arch/arm64).
 *    The consumer's load of `state` may likewise be made before it reads its own clock, by as much as can be
 *    in flight in a processor, which is nothing against the slack.
 *  - An open call's words are stored with release, after `state` was for the call that stood there before:
 *    a consumer that finds `state` and `depth` unchanged behind its copy has one moment's (ct_lane_open()).
 *  - `wake` and `sleeping` are read by the producer after publishing, without a fence. A consumer that goes
 *    to sleep therefore says so, and looks once more after CT_PUBLISH_SLACK_NS without taking that back: who
 *    found it awake published before, and both sides' stores are seen by then, as above.
 *
 * Models of all of this, which are searched for states that must not be, are in tests/model/. */
#ifndef CT_PROTO_LANE_H
#define CT_PROTO_LANE_H

#include "names.h"
#include "open_call.h"
#include "record.h"
#include "rings.h"
#include "test_point.h"
#include "unsent.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { CT_LANE_HEADER_BYTES = 4096 };
#define CT_PUBLISH_SLACK_NS 200000

struct ct_loss {
    _Atomic uint64_t calls;
    _Atomic uint64_t first; /* ticks at return of the first and the last call lost by this owner */
    _Atomic uint64_t last;
};
static_assert(sizeof(struct ct_loss) == 24, "ct_loss");

/* Says whether a thread has the lane, which alone may write it. */
enum ct_lane_owner { CT_LANE_FREE = 0, CT_LANE_OWNED = 1 };

struct ct_lane {
    /* The line that each call of the producer touches: two nested calls fit beside the position. The consumer
     * writes `wake` there, once for each of its batches. */
    _Atomic uint64_t state; /* position << 1 | announcing */
    _Atomic uint32_t depth; /* calls entered and not returned; open[] holds the outermost CT_OPEN_MAX */
    _Atomic uint32_t tid;   /* the owner's, or the last one's */
    _Atomic uint64_t wake;  /* the position at which the doorbell is rung; 0: at each call */
    uint64_t pad0;
    struct ct_open open[CT_OPEN_MAX];
    _Atomic uint64_t since[CT_RINGS]; /* positions, all different but for 0 */
    uint8_t pad1[48];

    /* The consumer's line. */
    _Atomic uint64_t tail;      /* slots before this one may be written again */
    _Atomic uint64_t loss_seen; /* sum of loss[].calls that is in the database */
    _Atomic uint32_t ask;       /* times that memory was taken away << 3 | number of the ring that suffices */
    uint8_t pad2[44];

    /* The producer's, which a call that is recorded does not touch. */
    _Atomic uint32_t owner;   /* enum ct_lane_owner, taken by compare-and-swap */
    _Atomic uint32_t tenancy; /* counts owners */
    _Atomic uint64_t skipped; /* calls counted in `unsent` and in no `loss`, behind that */
    struct ct_loss loss[CT_LANE_LOSS_COUNT];

    /* What the producer may write without asking; see above. */
    _Atomic uint8_t gate[CT_RINGS]; /* enum ct_lane_gate, of each ring but the shortest */
    _Atomic uint16_t level;         /* number of the ring in use, and CT_LEVEL_REFUSED */
    _Atomic uint64_t upto;          /* position; where the shortest ring is in use it says nothing */
    struct ct_unsent unsent[CT_LANE_UNSENT];
};
static_assert(offsetof(struct ct_lane, open) == 32, "open calls share the producer's line");
static_assert(offsetof(struct ct_lane, tail) % 64 == 0, "consumer's line");
static_assert(offsetof(struct ct_lane, owner) % 64 == 0, "cold line");
static_assert(offsetof(struct ct_lane, unsent) % 64 == 0, "two counters a line");
static_assert(sizeof(struct ct_lane) <= CT_LANE_HEADER_BYTES, "ct_lane");

/* ---- producer ---- */

static inline uint64_t ct_lane_position(struct ct_lane *lane)
{
    return atomic_load_explicit(&lane->state, memory_order_relaxed) >> 1;
}

static inline void ct_lane_announce(struct ct_lane *lane, uint64_t position)
{
    atomic_store_explicit(&lane->state, position << 1 | 1, memory_order_relaxed);
    /* Keeps the compiler from reading the clock first; the processor is the slack's business. */
    atomic_signal_fence(memory_order_seq_cst);
}

/* Publishes every slot before `position`. Pairs with the acquire in ct_lane_state(). */
static inline void ct_lane_publish(struct ct_lane *lane, uint64_t position)
{
    atomic_store_explicit(&lane->state, position << 1, memory_order_release);
}

/* From the position on the slots are in that ring, of which nothing is left to be read. No other ring was
 * begun there. Pairs with the acquire in ct_lane_since(), and with that of the first position behind it. */
static inline void ct_lane_turn(struct ct_lane *lane, uint32_t level, uint64_t position)
{
    atomic_store_explicit(&lane->since[level], position, memory_order_release);
}

/* The ring `level`, and what of it may be written. Its gate is held, or it is the shortest. Pairs with the
 * acquire in ct_lane_window(): `since` is known by then. */
static inline void ct_lane_show(struct ct_lane *lane, uint32_t level, uint64_t upto)
{
    atomic_store_explicit(&lane->upto, upto, memory_order_relaxed);
    atomic_store_explicit(&lane->level, (uint16_t)level, memory_order_release);
}

/* Pairs with the release in ct_lane_consume(): the slots before the result were read for the last time. */
static inline uint64_t ct_lane_tail(struct ct_lane *lane)
{
    return atomic_load_explicit(&lane->tail, memory_order_acquire);
}

/* To be read behind the publishing: a collector that goes to sleep has set it before. */
static inline uint64_t ct_lane_wake(struct ct_lane *lane)
{
    return atomic_load_explicit(&lane->wake, memory_order_relaxed);
}

/* The doorbell was rung for that position: the calls that come until the collector names another one need not
 * do it again. A collector that was awake, and may have looked too early, is tried again with the next call:
 * then this is not called. */
static inline void ct_lane_rung(struct ct_lane *lane, uint64_t wake)
{
    atomic_compare_exchange_strong_explicit(&lane->wake, &wake, UINT64_MAX, memory_order_relaxed,
                                            memory_order_relaxed);
}

/* The open call stands before the counter of open calls says so: pairs with the acquire in ct_lane_depth().
 * Each of its words comes after the publishing of the call that had its place before: pairs with the fence of
 * ct_lane_open(). On x86-64 every store does, at no cost. */
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

/* Copies from which positions on the rings were in use; to be read behind the position. */
static inline void ct_lane_since(struct ct_lane *lane, uint64_t since[CT_RINGS])
{
    for (int level = 0; level < CT_RINGS; level++)
        since[level] = atomic_load_explicit(&lane->since[level], memory_order_acquire);
}

struct ct_lane_window {
    uint64_t upto;
    uint32_t level, refused;
};

/* Pairs with the release in ct_lane_show(). While a ring's gate is held, its own part of that is one
 * moment's, as long as the producer does not leave it for another one. */
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

/* Copies the outermost `depth` open calls, CT_OPEN_MAX at most. They are of one moment if ct_lane_state() and
 * ct_lane_depth() give afterwards what they gave before: whoever reads a word of a later call here finds that
 * call's predecessor published there. */
static inline void ct_lane_open(const struct ct_lane *lane, uint32_t depth, struct ct_open_call *calls)
{
    for (uint32_t i = 0; i < depth; i++) {
        calls[i].start = atomic_load_explicit(&lane->open[i].start, memory_order_relaxed);
        calls[i].function = atomic_load_explicit(&lane->open[i].function, memory_order_relaxed);
    }
    atomic_thread_fence(memory_order_acquire);
}

#endif
