/* Time. Records carry ticks of the clock that their segment names; the collector turns ticks into
 * CLOCK_MONOTONIC nanoseconds with anchors, pairs of both clocks read together.
 *
 * The processor's counter costs 10 ns where a vDSO clock costs 25, and is used where the kernel itself trusts
 * it. On x86-64: the current clock source is `tsc`, or it is `kvm-clock` and `tsc` is still offered beside it
 * (the kernel withdraws a counter that it found unstable from the list). On aarch64: the current clock source
 * is `arch_sys_counter`, which is cntvct_el0; where an erratum keeps programs from reading it themselves, the
 * kernel answers the read in their place, slowly and correctly. */
#ifndef CT_PROTO_CLOCK_H
#define CT_PROTO_CLOCK_H

#include <assert.h>
#include <stdint.h>
#include <time.h>

enum ct_clock_kind {
    CT_CLOCK_MONOTONIC = 0, /* ticks are CLOCK_MONOTONIC nanoseconds */
    CT_CLOCK_COUNTER = 1,   /* x86-64: time-stamp counter; aarch64: cntvct_el0 */
    CT_CLOCK_COUNT
};

/* Both clocks at one moment, to `error_ticks`. */
struct ct_anchor {
    uint64_t ticks;
    uint64_t monotonic_ns;
    uint64_t error_ticks; /* the counter's advance while both were read */
};
static_assert(sizeof(struct ct_anchor) == 24, "ct_anchor");

/* The counter now. On x86-64 one read never precedes another; it may precede earlier loads and stores that
 * are still in flight, which lane.h allows for. On aarch64 a bare read may be made speculatively and out of
 * order, even ahead of an earlier one ("Arm Architecture Reference Manual for A-profile", on the generic
 * timer), and a call would seem to return before it was made; the isb prevents that, as it does in Linux's
 * own
 * __arch_get_hw_counter(). CNTVCTSS_EL0 would need no isb on processors that have it (FEAT_ECV), but a test
 * for that at every read. */
static inline uint64_t ct_counter_read(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks) : : "memory");
    return ticks;
#else
#error "no counter for this architecture"
#endif
}

static inline uint64_t ct_monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Reads both clocks; the best of `tries` (1 or more), the counter before and after the other. */
static inline struct ct_anchor ct_anchor_read(int tries)
{
    struct ct_anchor best = { .error_ticks = UINT64_MAX };
    for (int i = 0; i < tries; i++) {
        const uint64_t before = ct_counter_read();
        const uint64_t now_ns = ct_monotonic_ns();
        const uint64_t after = ct_counter_read();
        if (after - before < best.error_ticks)
            best = (struct ct_anchor){ before + (after - before) / 2, now_ns, after - before };
    }
    return best;
}

#endif
