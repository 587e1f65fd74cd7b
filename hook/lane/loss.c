#include "loss.h"

#include "current.h"
#include "test_point.h"

/* ---- by code that does not hold a lane ---- */

static void lose_shared(struct ct_segment *segment, uint16_t function, uint64_t calls, uint64_t ticks)
{
    struct ct_function *entry = &ct_segment_directory(segment)[function];
    atomic_fetch_add_explicit(&entry->lost_ticks, ticks, memory_order_relaxed);
    CT_TEST_POINT("loss.function_ticks");
    atomic_fetch_add_explicit(&entry->lost_calls, calls, memory_order_release);
    CT_TEST_POINT("loss.function_calls");
    ct_segment_note_drop(segment);
    CT_TEST_POINT("loss.noted");
}

static void lose_by_cause_shared(struct ct_loss *loss, uint64_t calls, uint64_t end)
{
    /* `first` is 0 if the lane's owner has lost nothing yet; see introduce() in thread.c. */
    uint64_t none = 0;
    atomic_compare_exchange_strong_explicit(&loss->first, &none, end, memory_order_relaxed,
                                            memory_order_relaxed);
    CT_TEST_POINT("loss.first");
    atomic_store_explicit(&loss->last, end, memory_order_relaxed);
    CT_TEST_POINT("loss.last");
    atomic_fetch_add_explicit(&loss->calls, calls, memory_order_release);
    CT_TEST_POINT("loss.calls");
}

void ct_record_lose_unlaned(struct ct_segment *segment, uint16_t function, uint64_t start, uint64_t end)
{
    const enum ct_unlaned why = ct_counter_is_denied() ? CT_UNLANED_CLOCK : CT_UNLANED_MEMORY;
    lose_shared(segment, function, 1, end - start);
    lose_by_cause_shared(&segment->unlaned[why], 1, end);
}

void ct_record_lose_many(struct ct_segment *segment, uint16_t function, uint64_t calls, uint64_t ticks,
                         uint64_t end)
{
    lose_shared(segment, function, calls, ticks);
    lose_by_cause_shared(&segment->unlaned[CT_UNLANED_MEMORY], calls, end);
}

void ct_record_lose(struct ct_producer *producer, enum ct_loss_cause cause, uint16_t function, uint64_t start,
                    uint64_t end)
{
    if (producer->epoch != ct_process_epoch())
        return; /* its segment was abandoned; the next segment's absent_ns covers the calls that may be
                 * missing */
    lose_shared(producer->segment, function, 1, end - start);
    /* If the lane is held, use CT_LOSS_SIGNAL, because the lane's holder may be counting a loss with any
     * other cause. */
    lose_by_cause_shared(&producer->lane->loss[producer->idle ? cause : CT_LOSS_SIGNAL], 1, end);
}

static void skip_shared(struct ct_segment *segment, uint16_t function, uint64_t calls, uint64_t ticks,
                        uint64_t bytes)
{
    struct ct_function *entry = &ct_segment_directory(segment)[function];
    atomic_fetch_add_explicit(&entry->skipped_ticks, ticks, memory_order_relaxed);
    CT_TEST_POINT("loss.skipped_ticks");
    if (bytes)
        atomic_fetch_add_explicit(&entry->skipped_bytes, bytes, memory_order_relaxed);
    CT_TEST_POINT("loss.skipped_bytes");
    atomic_fetch_add_explicit(&entry->skipped_calls, calls, memory_order_release);
    CT_TEST_POINT("loss.skipped_calls");
    ct_segment_note_drop(segment);
    CT_TEST_POINT("loss.skipped_noted");
}

void ct_record_skip(struct ct_segment *segment, uint16_t function, uint64_t ticks, uint64_t bytes)
{
    skip_shared(segment, function, 1, ticks, bytes);
}

void ct_record_skip_many(struct ct_segment *segment, uint16_t function, uint64_t calls, uint64_t ticks)
{
    skip_shared(segment, function, calls, ticks, 0);
}

/* ---- by the holder of a lane ---- */

struct ct_drop_count *ct_loss_find(struct ct_lane *lane, uint32_t key)
{
    for (uint32_t i = 0; i < CT_DROP_PROBES; i++) {
        struct ct_drop_count *drop = &lane->drops[ct_drop_place(key, i)];
        const uint32_t found = atomic_load_explicit(&drop->key, memory_order_relaxed);
        if (found == key)
            return drop;
        if (found != 0)
            continue;
        atomic_store_explicit(&drop->key, key, memory_order_relaxed);
        CT_TEST_POINT("loss.place_taken");
        return drop;
    }
    return NULL;
}

void ct_loss_count_shared(struct ct_producer *producer, uint16_t function, enum ct_drop_kind kind,
                          uint64_t ticks, uint64_t bytes)
{
    if (producer->epoch != ct_process_epoch())
        return;
    if (kind == CT_DROP_SKIPPED) {
        ct_record_skip(producer->segment, function, ticks, bytes);
        return;
    }
    struct ct_function *entry = &ct_segment_directory(producer->segment)[function];
    atomic_fetch_add_explicit(&entry->lost_bytes, bytes, memory_order_relaxed);
    lose_shared(producer->segment, function, 1, ticks);
}
