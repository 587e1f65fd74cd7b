#include "loss.h"

#include "current.h"
#include "test_point.h"

static void lose_function(struct ct_segment *segment, uint16_t function, uint64_t ticks, uint64_t bytes)
{
    struct ct_function *entry = &ct_segment_directory(segment)[function];
    atomic_fetch_add_explicit(&entry->lost_ticks, ticks, memory_order_relaxed);
    CT_TEST_POINT("loss.function_ticks");
    atomic_fetch_add_explicit(&entry->lost_bytes, bytes, memory_order_relaxed);
    CT_TEST_POINT("loss.function_bytes");
    atomic_fetch_add_explicit(&entry->lost_calls, 1, memory_order_release);
    CT_TEST_POINT("loss.function_calls");
    ct_segment_note_unsent(segment);
    CT_TEST_POINT("loss.noted");
}

static void lose_by_cause(struct ct_loss *loss, uint64_t end)
{
    /* `first` is 0 for an owner that lost nothing yet, see introduce() of thread.c. */
    uint64_t none = 0;
    atomic_compare_exchange_strong_explicit(&loss->first, &none, end, memory_order_relaxed,
                                            memory_order_relaxed);
    CT_TEST_POINT("loss.first");
    atomic_store_explicit(&loss->last, end, memory_order_relaxed);
    CT_TEST_POINT("loss.last");
    atomic_fetch_add_explicit(&loss->calls, 1, memory_order_release);
    CT_TEST_POINT("loss.calls");
}

void ct_record_lose_unlaned(struct ct_segment *segment, uint16_t function, uint64_t start, uint64_t end)
{
    lose_function(segment, function, end - start, 0);
    lose_by_cause(&segment->unlaned, end);
}

void ct_record_lose(struct ct_producer *producer, enum ct_loss_cause cause, uint16_t function, uint64_t start,
                    uint64_t end, uint64_t bytes)
{
    if (producer->epoch != ct_process_epoch())
        return; /* its segment is gone, and says since when calls may be missing */
    lose_function(producer->segment, function, end - start, bytes);
    lose_by_cause(&producer->lane->loss[cause], end);
}

void ct_record_skip(struct ct_segment *segment, uint16_t function, uint64_t ticks, uint64_t bytes)
{
    struct ct_function *entry = &ct_segment_directory(segment)[function];
    atomic_fetch_add_explicit(&entry->skipped_ticks, ticks, memory_order_relaxed);
    CT_TEST_POINT("loss.skipped_ticks");
    if (bytes)
        atomic_fetch_add_explicit(&entry->skipped_bytes, bytes, memory_order_relaxed);
    CT_TEST_POINT("loss.skipped_bytes");
    atomic_fetch_add_explicit(&entry->skipped_calls, 1, memory_order_release);
    CT_TEST_POINT("loss.skipped_calls");
    ct_segment_note_unsent(segment);
    CT_TEST_POINT("loss.skipped_noted");
}
