/* The private state of a lane's owner. */
#ifndef CT_PRODUCER_H
#define CT_PRODUCER_H

#include "compiler.h"
#include "lane.h"
#include "segment.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A kernel that was launched in this lane, and its name's ID, which is already defined in the lane. Valid as
 * long as ct_names_version does not change. */
struct ct_kernel_memo {
    uint64_t handle;
    uint32_t version; /* 0: none */
    uint32_t number;
};
enum { CT_KERNEL_MEMO_BITS = 7, CT_KERNEL_MEMOS = 1 << CT_KERNEL_MEMO_BITS };

/* This is private to the process, in memory that the kernel wipes on fork, so that not even the child of a
 * raw clone() can write to its parent's lane. If all fields are zero, the lane belongs to another process. */
struct ct_producer {
    /* The cache line that every call touches. */
    _Alignas(64) struct ct_lane *lane; /* NULL: nothing is recorded */
    uint8_t *ring;
    uint64_t mask;      /* slots - 1 */
    uint64_t position;  /* next slot to write */
    uint64_t limit;     /* slots before this position may be written without a check; 0 once the thread has
                         * dropped the lane */
    uint8_t idle;       /* 0 while a record is being written, 1 otherwise; checked by signal handlers */
    uint8_t noted;      /* 1 if the record of an open call must be followed by a note (correlation.h) */
    uint8_t is_counter; /* ct_clock_is_counter of the lane's segment, for the hot path */
    uint8_t reserved0;
    uint32_t depth;
    uintptr_t frames[CT_OPEN_MAX]; /* ct_frame_address() of the open calls; ranges have none, see range.c */

    uint32_t index; /* number of the lane */
    uint32_t epoch; /* the process's epoch when the lane was mapped */
    struct ct_segment *segment;
    uint64_t trees; /* number of outermost calls that have returned; used for sampling */
    struct ct_kernel_memo kernels[CT_KERNEL_MEMOS];
    uint64_t full_tail;  /* the lane's tail when the ring was last full and could not grow; UINT64_MAX: check
                          * again */
    uint64_t full_end;   /* the position where the ring's room, including the reserve, ended at the last
                          * check */
    uint32_t full_cause; /* enum ct_loss_cause of calls that find the ring full */
    uint32_t full_calls; /* number of lost calls counted on the fast path */
    uint64_t long_ticks; /* a call that takes at least this long may use the reserve */
    uintptr_t event;     /* stack address of the event being recorded (ct_record_hold()), or 0 */
    uintptr_t writer; /* stack address of the call that was writing a record when another call did not find it
                       * among the open calls, or 0 */

    /* Owned by ring_resize.c. */
    uint64_t reserve; /* slots before this position may be written; only high-priority calls may use those
                       * from `limit` on */
    uint64_t begun[CT_RINGS]; /* for each ring: the position where its last use began */
    uint64_t ended[CT_RINGS]; /* for each ring: the position where its last use ended */
    uint64_t made[CT_RINGS];  /* for each ring: slots before this position need memory to be allocated */
    uint64_t taken;           /* bytes allocated for the current ring since it was begun */
    uint32_t level;           /* number of the current ring */
    uint32_t sound;           /* bit N is set if all memory of ring N is allocated */
    uint32_t applied;         /* the value of the lane's `request` that was last applied */
    bool refused;             /* there was no memory for a longer ring or for more of the current ring */
    bool held;                /* the collector held the ring lock that was last needed */
    bool impatient;           /* the wait for the ring lock that was last needed timed out */
    bool stuck;               /* the last attempt to switch to a longer ring failed */

    /* Owned by reserve.c. */
    uint64_t step;       /* the ring has been written without a check since this position */
    uint64_t lost_slots; /* slots of important calls lost since the ring was last read */
    uint8_t pressure;    /* number of times that the share of low-priority calls has been halved */
    bool is_sampled;     /* the first records in the current ring have been examined */

    /* Owned by correlation.c. Valid while `noted` is 1. */
    uint64_t correlation;
    uint64_t noted_start; /* ticks when the noted call began; later calls at its depth have other ticks */
    uint32_t noted_depth;

    /* Owned by gpu_gate.c. The start of the open call that waits at the gate; 0: none */
    _Atomic uint64_t held_start;

    /* Owned by producer_pool.c and thread.c. */
    _Atomic uint32_t owner;        /* enum ct_producer_owner */
    uint32_t number;               /* number of this producer in the pool */
    uintptr_t around;              /* if LEFT: the address of the outermost call that was open when the lane
                                    * was dropped, or 0 */
    struct ct_producer *next_left; /* the producer that the same thread dropped previously */
};
static_assert(offsetof(struct ct_producer, frames) == 48, "two open calls share the line");
static_assert(offsetof(struct ct_producer, lane) == 0 && offsetof(struct ct_producer, is_counter) == 42,
              "trampoline");
static_assert(offsetof(struct ct_producer, depth) == 44 && CT_OPEN_MAX == 16, "trampoline");

/* A producer's depth after another thread has abandoned the segment. The producer's owner takes another lane
 * at its next call. If the owner was inside a call, it may have overwritten this depth. In that case, when
 * the call returns, the owner finds no room for its record and drops the lane. */
enum { CT_DEPTH_STALE = 1 << 30 };

static inline bool ct_producer_is_stale(const struct ct_producer *self)
{
    return CT_UNLIKELY(self->depth >= CT_DEPTH_STALE);
}

/* The calling thread's producer, or &ct_dormant while nothing is recorded. Never NULL. */
extern CT_LOCAL __thread struct ct_producer *ct_self;
extern CT_LOCAL struct ct_producer ct_dormant;
/* The producer in a call's frame if the process is being recorded but the thread has no lane. */
extern CT_LOCAL struct ct_producer ct_unlaned;
/* The producer of the hook's own thread, whose calls are not the program's and are not recorded. */
extern CT_LOCAL struct ct_producer ct_untraced;

/* True if the segment has been abandoned or the daemon has a request. In either case, every call in the lane
 * must run ct_attach_apply(), even if the call is not recorded. */
static inline bool ct_wants_attention(struct ct_lane *lane)
{
    return ct_lane_wake(lane) == 0;
}

/* True if the doorbell must be rung at this position, or if the lane needs attention. */
static inline bool ct_wants_doorbell(struct ct_lane *lane, uint64_t position)
{
    return position >= ct_lane_wake(lane);
}

/* Counts the open calls around a call at stack address `frame`. Calls at or below `frame` are no longer open:
 * they were left by longjmp, an exception or cancellation. A call that was writing a record may have been
 * left by a signal handler, or the handler may have switched to a coroutine (ct_record_is_left()). */
static inline uint32_t ct_depth_around(struct ct_producer *self, uintptr_t frame)
{
    uint32_t depth = self->depth;
    while (CT_UNLIKELY(depth > 0)) {
        const uint32_t top = depth < CT_OPEN_MAX ? depth : CT_OPEN_MAX;
        if (self->frames[top - 1] > frame)
            break;
        depth = top - 1;
        if (!self->idle && (intptr_t)self->frames[depth] > 0) /* not a range */
            self->writer = self->frames[depth];
    }
    return depth;
}

/* Pushes a call at `frame` onto the thread's stack of open calls at the given depth. */
static inline void ct_depth_put(struct ct_producer *self, uint32_t depth, uintptr_t frame)
{
    if (CT_LIKELY(depth < CT_OPEN_MAX))
        self->frames[depth] = frame;
    self->depth = depth + 1;
}

/* Pushes a call at `frame` at the depth implied by its address, and returns that depth. */
static inline uint32_t ct_depth_enter(struct ct_producer *self, uintptr_t frame)
{
    const uint32_t depth = ct_depth_around(self, frame);
    ct_depth_put(self, depth, frame);
    return depth;
}

/* True if the call at the given depth is not inside another call. Ranges have no frame, and enclose call
 * trees without being part of them. */
static inline bool ct_outermost(const struct ct_producer *self, uint32_t depth)
{
    /* For a range, `frames` contains 0 or a number above all addresses, neither of which can be a frame's
     * address. */
    return depth == 0 || (depth <= CT_OPEN_MAX && (intptr_t)self->frames[depth - 1] <= 0);
}

#endif
