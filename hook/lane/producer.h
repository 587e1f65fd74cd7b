/* A lane as the thread that owns it sees it. */
#ifndef CT_PRODUCER_H
#define CT_PRODUCER_H

#include "compiler.h"
#include "lane.h"
#include "segment.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A kernel that this lane has launched, with its name's number, which was sent. It holds as long as
 * ct_names_version is what it was. */
struct ct_kernel_memo {
    uint64_t handle;
    uint32_t version; /* 0: none */
    uint32_t number;
};
enum { CT_KERNEL_MEMO_BITS = 7, CT_KERNEL_MEMOS = 1 << CT_KERNEL_MEMO_BITS };

/* Private to the process, in memory that the kernel wipes in a fork's child, so that not even a raw clone()
 * can write into its parent's lane. All zero means "not mine". */
struct ct_producer {
    /* The line that each call touches. */
    _Alignas(64) struct ct_lane *lane; /* NULL: nothing is recorded */
    uint8_t *ring;
    uint64_t mask;     /* slots - 1 */
    uint64_t position; /* next slot to write */
    uint64_t limit; /* slots up to here may be written without asking; 0 when its thread has let go of it */
    uint32_t idle;  /* 1 except while a record is being written: a signal handler then finds 0 */
    uint32_t depth;
    uintptr_t frames[CT_OPEN_MAX]; /* ct_frame_address() of the open calls; ranges have none, see range.c */

    uint32_t index; /* number of the lane */
    uint32_t epoch; /* the process's epoch when the lane was mapped */
    struct ct_segment *segment;
    uint64_t trees; /* outermost calls that have returned: sampling takes some of them */
    struct ct_kernel_memo kernels[CT_KERNEL_MEMOS];
    uint64_t
        full_tail; /* the lane's tail when its ring had no room last and could not grow; UINT64_MAX: it has */
    uint64_t full_end;   /* and the position at which the reserve ended then */
    uint32_t full_cause; /* enum ct_loss_cause of what is lost then */
    uint32_t full_calls; /* those counted the short way */
    uint64_t long_ticks; /* a call that takes so long is worth a place in the reserve */
    uintptr_t act; /* place on the stack of the act that is being recorded (ct_record_hold()), 0 for none */

    /* turn.c's own. */
    uint64_t reserve;         /* slots up to here may be written, from `limit` on by calls that say more */
    uint64_t begun[CT_RINGS]; /* of each ring: the position at which it was begun last, */
    uint64_t ended[CT_RINGS]; /* and at which it was left */
    uint64_t made[CT_RINGS];  /* slots of a ring in use before this want memory that has to be asked for */
    uint64_t taken;           /* bytes that were asked for since it was begun */
    uint32_t level;           /* its number */
    uint32_t sound;           /* a bit for each ring all of which may be touched */
    uint32_t asked;           /* the collector's last wish */
    bool refused;             /* there was no memory for a longer ring, or for the rest of this one */
    bool held;                /* the collector held a gate that was wanted */
    bool impatient;           /* the last gate that was wanted was held longer than is waited for */
    bool stuck;               /* the last longer ring that was asked for could not be had */

    /* reserve.c's own. */
    uint64_t step;       /* the position from which on the ring has been written without asking */
    uint64_t lost_slots; /* of important calls that were lost since the ring was last read */
    uint8_t pressure;    /* number of times that the share of low-priority calls was halved */
    bool is_sampled;     /* the first records in the ring in use have been examined */

    /* slot.c's and thread.c's own. */
    _Atomic uint32_t owner;        /* enum slot_owner */
    uint32_t slot;                 /* number of this slot */
    uintptr_t around;              /* left: the outermost call that was open then, 0 for none */
    struct ct_producer *next_left; /* left by the same thread before */
};
static_assert(offsetof(struct ct_producer, frames) == 48, "two open calls share the line");
static_assert(offsetof(struct ct_producer, lane) == 0, "trampoline");
static_assert(offsetof(struct ct_producer, depth) == 44 && CT_OPEN_MAX == 16, "trampoline");

/* The depth of a producer whose segment another thread has given up: its own thread takes another lane at its
 * next call. A thread that was inside a call may have written another depth since. It finds no room for that
 * call's record, and lets go of the lane then. */
enum { CT_DEPTH_STALE = 1 << 30 };

static inline bool ct_producer_is_stale(const struct ct_producer *self)
{
    return CT_UNLIKELY(self->depth >= CT_DEPTH_STALE);
}

/* Never NULL: &ct_dormant when nothing is recorded. */
extern CT_LOCAL __thread struct ct_producer *ct_self;
extern CT_LOCAL struct ct_producer ct_dormant;
/* A frame's producer when the process records and its thread has no lane. */
extern CT_LOCAL struct ct_producer ct_unlaned;

/* True if every call of the lane is to look up (ct_attach_heed()), also one that is not recorded: its segment
 * is given up, or there is a wish to follow. */
static inline bool ct_wants_attention(struct ct_lane *lane)
{
    return ct_lane_wake(lane) == 0;
}

/* True if the collector asked to be woken by now, or for attention. */
static inline bool ct_wants_doorbell(struct ct_lane *lane, uint64_t position)
{
    return position >= ct_lane_wake(lane);
}

/* Counts the calls that are open around one at `frame`. One that stands there or below was left by longjmp,
 * an exception or cancellation: it is not open any more. */
static inline uint32_t ct_depth_around(const struct ct_producer *self, uintptr_t frame)
{
    uint32_t depth = self->depth;
    while (CT_UNLIKELY(depth > 0)) {
        const uint32_t top = depth < CT_OPEN_MAX ? depth : CT_OPEN_MAX;
        if (self->frames[top - 1] > frame)
            break;
        depth = top - 1;
    }
    return depth;
}

/* Puts a call that stands there on the thread's stack of open calls, at that depth. */
static inline void ct_depth_put(struct ct_producer *self, uint32_t depth, uintptr_t frame)
{
    if (CT_LIKELY(depth < CT_OPEN_MAX))
        self->frames[depth] = frame;
    self->depth = depth + 1;
}

/* The same at the depth where it belongs, which is returned. */
static inline uint32_t ct_depth_enter(struct ct_producer *self, uintptr_t frame)
{
    const uint32_t depth = ct_depth_around(self, frame);
    ct_depth_put(self, depth, frame);
    return depth;
}

/* True if the call at that depth is not inside another one. Ranges have no frame and enclose trees of calls
 * without being part of them. */
static inline bool ct_outermost(const struct ct_producer *self, uint32_t depth)
{
    /* A range has a number above all addresses, or 0: no frame's address. */
    return depth == 0 || (depth <= CT_OPEN_MAX && (intptr_t)self->frames[depth - 1] <= 0);
}

#endif
