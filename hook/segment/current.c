#include "current.h"

#include "lock.h"

static struct ct_segment *_Atomic current;
static _Atomic uint32_t epoch;

bool ct_clock_is_counter;
struct ct_replayed ct_replayed;

uint64_t ct_now_ns(void)
{
    return ct_replayed.now_ns ? ct_replayed.now_ns : ct_monotonic_ns();
}

/* The process lock blocks signals while it is held. If a signal handler could interrupt the holder, the
 * handler's calls could not get function numbers, and would not be counted under any function. */
static struct ct_lock lock = { .signals_wait = true };

bool ct_process_lock(void)
{
    return ct_lock_take(&lock);
}

bool ct_process_lock_try(void)
{
    return ct_lock_try(&lock);
}

void ct_process_unlock(void)
{
    ct_lock_give(&lock);
}

void ct_process_lock_forget(void)
{
    ct_lock_forget(&lock);
}

struct ct_segment *ct_process_current(void)
{
    return atomic_load_explicit(&current, memory_order_acquire);
}

void ct_process_set_current(struct ct_segment *segment)
{
    /* Pairs with the acquire in ct_process_current(), after which the rows have their function numbers in
     * this segment. */
    atomic_store(&current, segment);
}

uint32_t ct_process_epoch(void)
{
    return atomic_load_explicit(&epoch, memory_order_acquire);
}

void ct_process_count_epoch(void)
{
    atomic_fetch_add(&epoch, 1);
}
