/* A lane stays in its ring while there is room, since short rings stay in the processor's cache. It switches
 * to a longer ring when its ring is full, and to a shorter one when the collector reports that a shorter ring
 * suffices.
 *
 * System calls are made while signals are blocked, in most cases by the process lock. A signal handler that
 * calls siglongjmp() may abandon all other code midway. Even then, `level` identifies the current ring, and
 * settle() derives the other fields from `level` again. */
#include "ring_resize.h"

#include "current.h"
#include "error_guard.h"
#include "long_call.h"
#include "producer_pool.h"
#include "reserve.h"
#include "segment_file.h"
#include "system.h"
#include "test_point.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    PAGE_SLOTS = 4096 / CT_SLOT_BYTES,
    /* A ring of at most PIECE_SLOTS slots is allocated as a whole, and a longer ring in pieces of
     * PIECE_SLOTS. If there is no memory for the next piece, the producer continues in a ring that has been
     * allocated as a whole. */
    PIECE_SLOTS = 2 * 1024 * 1024 / CT_SLOT_BYTES,
    STEPS = 8, /* per ring; the collector's request is checked at each step */
    LOCK_LOOKS = 4000,
    LOCK_PAUSE_NS = 50000,
    LOCK_WAIT_LONGS = 50, /* multiple of ct_long_ticks(): 5 ms, longer than another thread's time slice */
};

static uint64_t slots_of(const struct ct_producer *self, uint32_t level)
{
    return ct_ring_slots(self->index, level, ct_segment_ring_slots());
}

static uint32_t rings_of(const struct ct_producer *self)
{
    return ct_ring_count(self->index, ct_segment_ring_slots());
}

static uint64_t at_most(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

/* Derives from `level` the other fields that describe the current ring. */
static void settle(struct ct_producer *self)
{
    struct ct_ring_map *map = ct_ring_map(self);
    self->limit = self->reserve = 0;
    map->used = self->level == 0 ? map->ring : map->longer;
    self->ring = map->used;
    self->mask = slots_of(self, self->level) - 1;
    ct_lane_switch(self->lane, self->level, self->begun[self->level]);
}

/* ---- ring locks ---- */

/* Takes the lock, or keeps it if it still has the producer's mark because a signal handler jumped out of the
 * code that held it. */
static bool try_lock(_Atomic uint8_t *lock)
{
    return ct_ring_lock_take(lock, CT_RING_LOCK_PRODUCER) ||
           atomic_load_explicit(lock, memory_order_relaxed) == CT_RING_LOCK_PRODUCER;
}

/* Lets other threads run for a moment, with signals blocked, since a signal handler might jump out of this
 * function. Returns false if system calls are not allowed. */
static bool pause_briefly(void)
{
    if (!ct_system_begin())
        return false;
    const uint64_t signals = ct_system_block_signals();
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = LOCK_PAUSE_NS }, NULL);
    ct_system_mask_signals(signals);
    ct_system_end();
    return true;
}

/* Takes a ring's lock, which the collector holds only for microseconds unless it is preempted or stopped.
 * Once a wait has timed out, later calls fail immediately if the lock is held, until one of them succeeds. */
static bool take_lock(struct ct_producer *self, uint32_t level)
{
    _Atomic uint8_t *lock = &self->lane->ring_lock[level];
    bool taken = try_lock(lock);
    for (int i = 0; i < LOCK_LOOKS && !taken && !self->impatient; i++)
        taken = try_lock(lock);
    if (!taken && !self->impatient) {
        CT_TEST_POINT("ring_resize.waiting");
        const uint64_t begin = ct_counter_read(), most = LOCK_WAIT_LONGS * ct_long_ticks();
        do
            taken = try_lock(lock);
        while (!taken && ct_counter_read() - begin < most && pause_briefly());
    }
    self->held = self->impatient = !taken;
    return taken;
}

/* Applies a new request from the collector, which may have removed memory allocated for the rings. */
static void apply_request(struct ct_producer *self)
{
    const uint32_t request = atomic_load_explicit(&self->lane->request, memory_order_relaxed);
    if (request == self->applied)
        return;
    self->made[self->level] = self->position + self->mask + 1;
    self->sound = 1;
    atomic_signal_fence(memory_order_seq_cst);
    self->applied = request;
}

/* ---- memory ---- */

/* Allocates memory for a ring's slots from position `from` up to `to`, so that the slots can be accessed.
 * Requires the ring's lock and the process lock. Returns the ring's mapping, or NULL if out of memory. */
static uint8_t *make(struct ct_producer *self, uint32_t level, uint8_t *ring, uint64_t from, uint64_t to)
{
    const uint64_t slots = slots_of(self, level);
    uint64_t place = (from & (slots - 1)) / PAGE_SLOTS * PAGE_SLOTS;
    uint64_t left = to - from + (from & (PAGE_SLOTS - 1));
    left = at_most((left + PAGE_SLOTS - 1) / PAGE_SLOTS * PAGE_SLOTS, slots);
    while (left > 0) {
        const uint64_t length = at_most(left, slots - place);
        const struct ct_ring_piece piece = { .ring_bytes = slots * CT_SLOT_BYTES,
                                             .from = place * CT_SLOT_BYTES,
                                             .bytes = length * CT_SLOT_BYTES,
                                             .whole = at_most(self->taken, slots * CT_SLOT_BYTES) };
        uint8_t *made = ct_segment_ring(self->index, &piece, ring);
        if (!made) {
            if (ring && ring != ct_ring_map(self)->longer)
                ct_bound_unmap(ring, slots * CT_SLOT_BYTES);
            return NULL;
        }
        ring = made;
        self->taken += length * CT_SLOT_BYTES;
        left -= length;
        place = 0;
    }
    return ring;
}

/* True if memory may be allocated, in which case the process lock is held until end_asking(). */
static bool begin_asking(const struct ct_producer *self)
{
    if (!ct_segment_may_allocate(CT_BOUND_MORE) || !ct_system_begin())
        return false;
    if (ct_process_lock()) {
        if (self->epoch == ct_process_epoch()) /* if not, the lane belongs to an earlier segment */
            return true;
        ct_process_unlock();
    }
    ct_system_end();
    return false;
}

static void end_asking(void)
{
    ct_process_unlock();
    ct_system_end();
}

/* ---- the current ring ---- */

/* Returns the next position at which the collector's request is checked. */
static uint64_t step_from(uint64_t position, uint64_t slots)
{
    return (position + at_most(slots / STEPS, PIECE_SLOTS)) / PAGE_SLOTS * PAGE_SLOTS;
}

static bool is_empty(const struct ct_producer *self, uint32_t level, uint64_t tail)
{
    return level != self->level && tail >= self->ended[level];
}

/* True if the lane can probably switch to a longer ring once the current ring is full. */
static bool may_grow(const struct ct_producer *self, uint64_t tail)
{
    if (self->stuck || !ct_segment_may_allocate(CT_BOUND_MORE))
        return false;
    uint32_t longer = rings_of(self);
    while (--longer > self->level) {
        if (is_empty(self, longer, tail))
            return true;
    }
    return false;
}

/* Samples the slots from `step` on, unless the collector has read some of them and may have removed their
 * memory. While the ring's lock is held, the collector cannot remove slots. */
static void sample(struct ct_producer *self)
{
    if (self->is_sampled || (self->level > 0 && !take_lock(self, self->level)))
        return;
    if (ct_lane_tail(self->lane) <= self->step)
        ct_reserve_sample(self);
    if (self->level > 0)
        ct_ring_lock_release(&self->lane->ring_lock[self->level]);
}

/* Returns the position at which the reserve begins if the ring's room ends at `end`. */
static uint64_t reserve_of(const struct ct_producer *self, uint64_t end)
{
    return end - (self->mask + 1) + ct_reserve_share(self);
}

/* Makes the current ring writable up to `most` or an earlier position, and returns that position. Returns 0
 * if there is no memory for more slots, or if the collector holds the ring's lock. */
static uint64_t reach(struct ct_producer *self, uint64_t most)
{
    if (self->level == 0)
        return most;
    if (!take_lock(self, self->level))
        return 0;
    apply_request(self);
    const uint64_t upto = at_most(step_from(self->position, self->mask + 1), most);
    bool may_be_touched = self->position >= self->made[self->level];
    if (!may_be_touched && begin_asking(self)) {
        may_be_touched = make(self, self->level, ct_ring_map(self)->longer, self->position, upto);
        end_asking();
    }
    if (may_be_touched)
        ct_lane_show(self->lane, self->level, upto);
    ct_ring_lock_release(&self->lane->ring_lock[self->level]);
    self->refused = !may_be_touched;
    return may_be_touched ? upto : 0;
}

/* Extends the writable part of the current ring. Returns false if a record that ends at `wanted` does not
 * fit, because there are no free slots, there is no memory, or the ring's lock is taken. */
static bool extend(struct ct_producer *self, uint64_t tail, uint64_t wanted)
{
    const uint64_t begun = self->begun[self->level], end = (tail > begun ? tail : begun) + self->mask + 1;
    const bool may_leave = may_grow(self, tail);
    if (!may_leave)
        sample(self);
    const uint64_t reserve = may_leave ? end : reserve_of(self, end);
    self->full_end = end;
    if (wanted > reserve)
        return false;
    /* After the next step, there may be enough records for a sample. */
    const uint64_t step = self->position + (self->mask + 1) / STEPS, most = step > wanted ? step : wanted;
    self->limit = self->reserve =
        reach(self, may_leave || self->is_sampled ? reserve : at_most(reserve, most));
    self->step = self->position;
    if (self->limit == 0)
        self->full_end = self->position;
    return wanted <= self->limit;
}

/* ---- another ring ---- */

/* Makes ring `level` the current ring, starting at the producer's position. */
static void switch_to(struct ct_producer *self, uint32_t level)
{
    self->limit = self->reserve = 0;
    self->ended[self->level] = self->position;
    self->begun[level] = self->step = self->position;
    self->is_sampled = false;
    atomic_signal_fence(memory_order_seq_cst);
    self->level = level;
    atomic_signal_fence(memory_order_seq_cst);
    settle(self);
    CT_TEST_POINT("ring_resize.switched");
}

/* Switches to a ring other than the shortest, after allocating memory for the first slots to be written.
 * Returns false if out of memory. Requires the ring's lock. */
static bool fetch(struct ct_producer *self, uint32_t level)
{
    struct ct_ring_map *map = ct_ring_map(self);
    const uint64_t slots = slots_of(self, level), bytes = slots * CT_SLOT_BYTES;
    const bool is_whole = slots <= PIECE_SLOTS;
    if (is_whole && self->sound & UINT32_C(1) << level && map->longer && map->longer_bytes == bytes) {
        self->made[level] = 0;
        switch_to(self, level);
        return true;
    }
    if (!begin_asking(self))
        return false;
    CT_TEST_POINT("ring_resize.growing");
    self->taken = 0;
    uint8_t *ring = is_whole ? make(self, level, NULL, 0, slots)
                             : make(self, level, NULL, self->position, step_from(self->position, slots));
    if (ring) {
        uint8_t *old = map->longer;
        const uint64_t old_bytes = map->longer_bytes;
        map->longer = ring;
        map->longer_bytes = bytes;
        self->made[level] = is_whole ? 0 : self->position + slots;
        if (is_whole)
            self->sound |= UINT32_C(1) << level;
        switch_to(self, level);
        if (old)
            ct_bound_unmap(old, old_bytes);
        CT_TEST_POINT("ring_resize.grown");
    }
    end_asking();
    return ring != NULL;
}

/* Switches to a ring that has been read to its end. Returns false if there is no memory for the ring,
 * or if the collector holds the ring's lock. */
static bool take(struct ct_producer *self, uint32_t level, uint64_t tail)
{
    if (level == 0) {
        switch_to(self, 0);
        ct_lane_show(self->lane, 0, self->position);
        const uint64_t end = self->position + self->mask + 1;
        self->limit = self->reserve = may_grow(self, tail) ? end : reserve_of(self, end);
        return true;
    }
    if (!take_lock(self, level))
        return false;
    apply_request(self);
    const bool fetched = fetch(self, level);
    const uint64_t upto = step_from(self->position, slots_of(self, level));
    if (fetched)
        ct_lane_show(self->lane, level, upto);
    ct_ring_lock_release(&self->lane->ring_lock[level]);
    if (fetched)
        self->limit = self->reserve = upto;
    else
        self->refused = true;
    return fetched;
}

/* Switches to the next longer ring that is available. Switches to a shorter ring only if the free slots of
 * the current ring cannot be written, because there is no memory or the ring's lock is taken. Otherwise, the
 * producer stays in the full ring, since the collector will read that ring before it frees any slots in a
 * shorter one. */
static bool take_another(struct ct_producer *self, uint64_t tail)
{
    const uint32_t rings = rings_of(self), level = self->level;
    const bool cannot_reach = self->refused || self->held;
    if (self->position <= self->begun[level])
        return false;
    for (uint32_t i = 1; i < rings; i++) {
        const bool is_longer = level + i < rings;
        const uint32_t other = is_longer ? level + i : rings - 1 - i;
        if ((!is_longer && !cannot_reach) || !is_empty(self, other, tail))
            continue;
        const bool taken = take(self, other, tail);
        if (is_longer)
            self->stuck = !taken && self->refused;
        if (taken)
            return true;
    }
    return false;
}

/* Switches to a shorter ring if requested by the collector. */
static void shrink(struct ct_producer *self, uint64_t tail)
{
    const uint32_t request = atomic_load_explicit(&self->lane->request, memory_order_relaxed);
    const uint32_t wanted = request & ((1 << CT_RING_STEP) - 1);
    if (request == self->applied || wanted >= self->level || !is_empty(self, wanted, tail) ||
        self->position <= self->begun[self->level])
        return;
    take(self, wanted, tail);
    apply_request(self);
}

static bool make_room(struct ct_producer *self, uint32_t slots)
{
    const uint64_t tail = ct_lane_tail(self->lane);
    if (tail > self->position ||
        self->position - tail > ct_ring_slots_all(self->index, ct_segment_ring_slots()))
        return false; /* a collector would never write such a tail */
    if (!ct_ring_map(self)->ring)
        return false;
    self->refused = self->held = false;
    if (self->full_tail != UINT64_MAX && tail != self->full_tail)
        ct_reserve_adapt(self);
    settle(self);
    shrink(self, tail);
    self->full_tail = UINT64_MAX;
    if (extend(self, tail, ct_ring_record_end(self, slots)))
        return true;
    if (take_another(self, tail)) {
        self->refused = false;
        return ct_ring_record_end(self, slots) <= self->limit;
    }
    /* Retry once the collector has read more. If it has read everything, or holds a lock, retry at the next
     * call, since nothing signals the release of a lock. */
    self->full_tail = tail < self->position && !self->held ? tail : UINT64_MAX;
    self->full_cause = self->refused ? ct_segment_refusal() : CT_LOSS_FULL;
    self->long_ticks = ct_long_ticks();
    if (self->refused)
        atomic_fetch_or_explicit(&self->lane->level, CT_LEVEL_REFUSED, memory_order_relaxed);
    self->limit =
        self->position; /* no room, but nonzero, so that the fast path counts further calls (hot_count.h) */
    return false;
}

bool ct_ring_make_room(struct ct_producer *self, uint32_t slots)
{
    CT_ERROR_GUARD;
    const bool made = make_room(self, slots);
    /* Another thread may have abandoned the segment and set the limit to 0 before make_room() set it. Pairs
     * with the increment in ct_process_count_epoch(), before or after ct_producers_abandon(). */
    atomic_thread_fence(memory_order_seq_cst);
    if (CT_LIKELY(self->epoch == ct_process_epoch()))
        return made;
    self->limit = self->reserve = 0;
    return false;
}

bool ct_ring_use_reserve(struct ct_producer *self, uint32_t slots)
{
    CT_ERROR_GUARD;
    const uint64_t wanted = ct_ring_record_end(self, slots);
    if (self->full_tail == UINT64_MAX || wanted > self->full_end)
        return false;
    const uint64_t upto = reach(self, self->full_end);
    if (upto > 0)
        self->reserve = upto;
    return wanted <= upto;
}
