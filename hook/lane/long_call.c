#include "long_call.h"

#include "current.h"

#include <stdatomic.h>
#include <time.h>

enum { LONG_NS = 100000 };

static _Atomic uint64_t begun_ns, begun_ticks;

/* Uses CLOCK_BOOTTIME because it advances during suspend, just as the counter may. */
static uint64_t boot_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void ct_long_begin(void)
{
    atomic_store_explicit(&begun_ns, boot_ns(), memory_order_relaxed);
    atomic_store_explicit(&begun_ticks, ct_now(), memory_order_relaxed);
}

uint64_t ct_long_ticks(void)
{
    if (!ct_clock_is_counter)
        return LONG_NS;
    const uint64_t ns = boot_ns() - atomic_load_explicit(&begun_ns, memory_order_relaxed);
    const uint64_t ticks = ct_now() - atomic_load_explicit(&begun_ticks, memory_order_relaxed);
    return ticks / (ns / LONG_NS + 1);
}
