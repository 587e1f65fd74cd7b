#include "shm_rings.h"

#include "test_point.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    PAGE_SLOTS = 4096 / CT_SLOT_BYTES,
    PIECE_SLOTS = (128 << 10) / CT_SLOT_BYTES, /* freed at a time, because a producer may be waiting */
    /* A lane that can still grow counts as having at least this many slots, because running a batch for each
     * kilobyte would cost more than the memory is worth. */
    ENOUGH_SLOTS = (2 << 20) / CT_SLOT_BYTES,
    LEAST_PARTS = 2, /* a ring is sufficient if it holds this many times the waiting slots */
};
#ifndef CT_RINGS_LINGER_NS
#define CT_RINGS_LINGER_NS UINT64_C(5000000000)
#endif

void ct_lane_rings_init(struct ct_lane_rings *rings, const struct ct_shm_process *process,
                        struct ct_lane *shared, uint32_t index)
{
    const uint64_t most = process->facts.ring_bytes / CT_SLOT_BYTES;
    *rings = (struct ct_lane_rings){ .process = process,
                                     .shared = shared,
                                     .index = index,
                                     .count = ct_ring_count(index, most),
                                     .most = most };
    /* A collector that was killed may have left the lock held. */
    for (int level = 0; level < CT_RINGS; level++) {
        uint8_t shut = CT_RING_LOCK_COLLECTOR;
        atomic_compare_exchange_strong(&shared->ring_lock[level], &shut, CT_RING_LOCK_FREE);
    }
}

void ct_lane_rings_look(struct ct_lane_rings *rings)
{
    ct_lane_since(rings->shared, rings->since);
    rings->seen = ct_lane_window(rings->shared);
}

static uint64_t slots_of(const struct ct_lane_rings *rings, uint32_t level)
{
    return ct_ring_slots(rings->index, level, rings->most);
}

static off_t place_of(const struct ct_lane_rings *rings, uint32_t level)
{
    return (off_t)ct_segment_ring_offset(&rings->process->facts, rings->index,
                                         slots_of(rings, level) * CT_SLOT_BYTES);
}

static void read_file(int fd, uint8_t *to, size_t bytes, off_t at)
{
    while (bytes > 0) {
        const ssize_t got = pread(fd, to, bytes, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            memset(to, 0, bytes);
            return;
        }
        to += got;
        at += got;
        bytes -= (size_t)got;
    }
}

void ct_lane_rings_read(const struct ct_lane_rings *rings, uint64_t position, uint64_t slots, uint8_t *to)
{
    while (slots > 0) {
        uint64_t until;
        const uint32_t level = ct_ring_at(rings->since, rings->count, position, &until);
        const uint64_t place = position & (slots_of(rings, level) - 1);
        const uint64_t here =
            ct_shm_at_most(ct_shm_at_most(slots, slots_of(rings, level) - place), until - position);
        const size_t bytes = here * CT_SLOT_BYTES;
        if (level == 0)
            memcpy(to, (const uint8_t *)rings->shared + CT_LANE_HEADER_BYTES + place * CT_SLOT_BYTES, bytes);
        else
            read_file(rings->process->fd, to, bytes, place_of(rings, level) + (off_t)(place * CT_SLOT_BYTES));
        to += bytes;
        position += here;
        slots -= here;
    }
}

uint64_t ct_lane_rings_slots(const struct ct_lane_rings *rings)
{
    uint64_t slots = 0;
    for (uint32_t level = 0; level < rings->count && level <= rings->seen.level; level++)
        slots += slots_of(rings, level);
    const bool may_grow = !rings->seen.refused && rings->seen.level + 1 < rings->count;
    return may_grow && slots < ENOUGH_SLOTS ? ENOUGH_SLOTS : slots;
}

/* ---- returning memory ---- */

/* Unneeded slots, as a range of positions. The range is empty if `from` equals `to`. */
struct part {
    uint64_t from, to;
    uint64_t since, upto; /* see ct_lane_rings.given */
};

/* Finds the part of a ring that can be freed. The part can change unless the caller holds the ring's lock. In
 * the ring in use, the part to free is the one after `upto`, which the producer must not write to until it
 * has checked the lane again. Any other ring can be freed completely once it has been read. */
static struct part find_part(const struct ct_lane_rings *rings, uint32_t level, uint64_t tail)
{
    uint64_t since[CT_RINGS], until = UINT64_MAX;
    const struct ct_lane_window window = ct_lane_window(rings->shared);
    ct_lane_since(rings->shared, since); /* after the window, see ct_lane_show() */
    const uint64_t begun = since[level], slots = slots_of(rings, level);
    struct part part = { .since = begun, .upto = UINT64_MAX };
    if (window.level == level) {
        part.upto = window.upto;
        if (part.upto > CT_POSITION_MAX)
            return part;
        part.from = (part.upto + PAGE_SLOTS - 1) / PAGE_SLOTS * PAGE_SLOTS;
        part.to = ((tail > begun ? tail : begun) + slots) / PAGE_SLOTS * PAGE_SLOTS;
        if (part.to < part.from || part.to - part.from > slots)
            part.to = part.from;
        return part;
    }
    for (uint32_t other = 0; other < rings->count; other++) {
        if (since[other] > begun && since[other] < until)
            until = since[other];
    }
    if (begun > 0 && until <= tail)
        part.to = slots;
    return part;
}

/* Returns whether the file has data in this range of slots. Returns true if unknown. */
static bool has_data(const struct ct_lane_rings *rings, uint32_t level, uint64_t from, uint64_t to)
{
    const uint64_t place = (from & (slots_of(rings, level) - 1)) * CT_SLOT_BYTES;
    const off_t at = place_of(rings, level) + (off_t)place;
    const off_t data = lseek(rings->process->fd, at, SEEK_DATA);
    return data < 0 ? errno != ENXIO : data < at + (off_t)((to - from) * CT_SLOT_BYTES);
}

/* Informs the producer which ring is large enough, and keeps it from touching the ring's memory before it
 * checks the ring again. */
static void send_request(struct ct_lane *lane, uint32_t suffices)
{
    const uint32_t before = atomic_load_explicit(&lane->request, memory_order_relaxed) >> CT_RING_STEP;
    atomic_store_explicit(&lane->request, (before + 1) << CT_RING_STEP | suffices, memory_order_relaxed);
    CT_TEST_POINT("rings.requested");
}

/* Frees a piece, or returns false if the producer needs the piece now. The producer may have followed the
 * previous request, and may be treating the memory as its own. The new request is therefore written while the
 * lock is held, so that the producer finds it after taking the lock. */
static bool give_piece(struct ct_lane_rings *rings, uint32_t level, uint64_t tail, const struct part *part,
                       uint64_t from, uint64_t to)
{
    const uint64_t slots = slots_of(rings, level), place = from & (slots - 1);
    const uint32_t request = atomic_load_explicit(&rings->shared->request, memory_order_relaxed);
    _Atomic uint8_t *lock = &rings->shared->ring_lock[level];
    if (!ct_ring_lock_take(lock, CT_RING_LOCK_COLLECTOR))
        return false;
    const struct part now = find_part(rings, level, tail);
    const bool is_same =
        now.from == part->from && now.to == part->to && now.since == part->since && now.upto == part->upto;
    if (is_same)
        send_request(rings->shared, request & ((1 << CT_RING_STEP) - 1));
    CT_TEST_POINT("rings.giving");
    const bool given = is_same && fallocate(rings->process->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                            place_of(rings, level) + (off_t)(place * CT_SLOT_BYTES),
                                            (off_t)((to - from) * CT_SLOT_BYTES)) == 0;
    ct_ring_lock_release(lock);
    CT_TEST_POINT("rings.given");
    return given;
}

static void give_back(struct ct_lane_rings *rings, uint32_t level, uint64_t tail, uint64_t *budget)
{
    const struct part part = find_part(rings, level, tail);
    const uint64_t slots = slots_of(rings, level);
    for (uint64_t at = part.from; at < part.to;) {
        const uint64_t to =
            at + ct_shm_at_most(ct_shm_at_most(part.to - at, slots - (at & (slots - 1))), PIECE_SLOTS);
        const uint64_t bytes = has_data(rings, level, at, to) ? (to - at) * CT_SLOT_BYTES : 0;
        if (bytes == 0) {
            at = to;
            continue;
        }
        if (*budget < bytes || !give_piece(rings, level, tail, &part, at, to))
            return;
        *budget -= bytes;
        at = to;
    }
    if (part.from < part.to) {
        rings->given[level].since = part.since;
        rings->given[level].upto = part.upto;
    }
}

/* Returns whether a ring seems to have unneeded memory, without taking the ring's lock. */
static bool has_part(const struct ct_lane_rings *rings, uint32_t level, uint64_t tail)
{
    const struct part part = find_part(rings, level, tail);
    return part.from < part.to &&
           (rings->given[level].since != part.since || rings->given[level].upto != part.upto);
}

void ct_lane_rings_tidy(struct ct_lane_rings *rings, uint64_t tail, uint64_t used, uint64_t now_ns,
                        uint64_t *budget)
{
    rings->peak = used > rings->peak ? used : rings->peak;
    if (rings->peak_since_ns == 0)
        rings->peak_since_ns = now_ns;
    if (now_ns - rings->peak_since_ns < CT_RINGS_LINGER_NS)
        return;
    uint32_t suffices = 0;
    while (suffices + 1 < rings->count && slots_of(rings, suffices) / LEAST_PARTS < rings->peak)
        suffices++;
    rings->peak = 0;
    rings->peak_since_ns = now_ns;
    bool is_asked = false;
    for (uint32_t level = suffices + 1; level < rings->count; level++) {
        if (!has_part(rings, level, tail))
            continue;
        if (!is_asked)
            send_request(rings->shared, suffices);
        is_asked = true;
        give_back(rings, level, tail, budget);
    }
}
