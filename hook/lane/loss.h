/* Counts calls that are not in the ring because they were lost or the selection leaves them out. The holder
 * of a lane counts its unrecorded calls in the lane, without locked instructions. All other code, including
 * signal handlers that interrupted the holder, counts them in the segment's directory. */
#ifndef CT_LOSS_H
#define CT_LOSS_H

#include "producer.h"
#include "test_point.h"

/* Counts a lost call. For code that does not hold the thread's lane. If the lane is held, the cause becomes
 * CT_LOSS_SIGNAL. */
void ct_record_lose(struct ct_producer *producer, enum ct_loss_cause cause, uint16_t function, uint64_t start,
                    uint64_t end);
/* Counts a lost call that was made by the calling thread, which has no lane. */
void ct_record_lose_unlaned(struct ct_segment *segment, uint16_t function, uint64_t start, uint64_t end);

/* Counts several lost calls for which there was no lane. `ticks` is the sum of the calls' durations. `end` is
 * approximately when the last call returned. */
void ct_record_lose_many(struct ct_segment *segment, uint16_t function, uint64_t calls, uint64_t ticks,
                         uint64_t end);

/* Counts a call that the selection leaves out. For code that does not hold a lane. */
void ct_record_skip(struct ct_segment *segment, uint16_t function, uint64_t ticks, uint64_t bytes);
/* Counts several calls that the selection leaves out. `ticks` is the sum of their durations. */
void ct_record_skip_many(struct ct_segment *segment, uint16_t function, uint64_t calls, uint64_t ticks);

/* ---- by the holder of the lane, inline for the fast paths ---- */

/* Returns the lane's counters for the key, after assigning the key a place if necessary. Returns NULL if all
 * places for the key are taken. */
struct ct_drop_count *ct_loss_find(struct ct_lane *lane, uint32_t key);
/* Counts a call in the directory, because the lane has no place for its counters. */
void ct_loss_count_shared(struct ct_producer *producer, uint16_t function, enum ct_drop_kind kind,
                          uint64_t ticks, uint64_t bytes);

static inline void ct_loss_add(_Atomic uint64_t *counter, uint64_t value, memory_order order)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + value, order);
}

static inline void ct_loss_count(struct ct_producer *producer, uint16_t function, enum ct_drop_kind kind,
                                 uint64_t ticks, uint64_t bytes)
{
    struct ct_lane *lane = producer->lane;
    const uint32_t key = ct_drop_key(function, kind);
    struct ct_drop_count *drop = &lane->drops[ct_drop_place(key, 0)];
    if (CT_UNLIKELY(atomic_load_explicit(&drop->key, memory_order_relaxed) != key))
        drop = ct_loss_find(lane, key);
    if (CT_UNLIKELY(!drop)) {
        ct_loss_count_shared(producer, function, kind, ticks, bytes);
        return;
    }
    ct_loss_add(&drop->ticks, ticks, memory_order_relaxed);
    CT_TEST_POINT("loss.held_ticks");
    if (CT_UNLIKELY(bytes))
        ct_loss_add(&drop->bytes, bytes, memory_order_relaxed);
    CT_TEST_POINT("loss.held_bytes");
    ct_loss_add(&drop->calls, 1, memory_order_release);
    CT_TEST_POINT("loss.held_calls");
}

/* Counts a call for which there was no room: as skipped if the cause is CT_LOSS_PRESSURE, otherwise as lost.
 * `bytes` is the number of bytes that the call moved. */
static inline void ct_record_lose_held(struct ct_producer *producer, enum ct_loss_cause cause,
                                       uint16_t function, uint64_t start, uint64_t end, uint64_t bytes)
{
    const enum ct_drop_kind kind = cause == CT_LOSS_PRESSURE ? CT_DROP_SKIPPED : CT_DROP_LOST;
    ct_loss_count(producer, function, kind, end - start, bytes);
    struct ct_loss *loss = &producer->lane->loss[cause];
    if (CT_UNLIKELY(atomic_load_explicit(&loss->first, memory_order_relaxed) == 0))
        atomic_store_explicit(&loss->first, end, memory_order_relaxed);
    CT_TEST_POINT("loss.held_first");
    atomic_store_explicit(&loss->last, end, memory_order_relaxed);
    CT_TEST_POINT("loss.held_last");
    /* Pairs with the acquire in the collector's read_drops(). */
    ct_loss_add(&loss->calls, 1, memory_order_release);
    CT_TEST_POINT("loss.held_cause");
}

/* Counts a call that the selection leaves out. */
static inline void ct_record_skip_held(struct ct_producer *producer, uint16_t function, uint64_t ticks,
                                       uint64_t bytes)
{
    ct_loss_count(producer, function, CT_DROP_SKIPPED, ticks, bytes);
    ct_loss_add(&producer->lane->skipped, 1, memory_order_release); /* as above */
    CT_TEST_POINT("loss.held_skip");
}

#endif
