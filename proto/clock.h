/* Time. Timestamps in records are ticks of the clock named in the segment. The collector converts ticks to
 * CLOCK_MONOTONIC nanoseconds by means of anchors, which are simultaneous readings of both clocks.
 *
 * Reading the processor's counter takes 10 ns, whereas reading a clock through the vDSO takes 25 ns. The
 * counter is used if the kernel's own clock is made of it. On x86-64, the current clock source must be `tsc`,
 * `kvm-clock` with `tsc` available as well (the kernel removes an unstable counter from the list), or
 * `hyperv_clocksource_tsc_page`. Hyper-V offers that source only if the counter's rate is constant. One
 * page converts the counters of all processors, and it changes only when the machine is migrated, which the
 * collector detects as a step (Hypervisor Top-Level Functional Specification, "Partition Reference TSC
 * Mechanism"). On aarch64, the current clock source must be `arch_sys_counter`, which is cntvct_el0. If an
 * erratum prevents programs from reading cntvct_el0, the kernel emulates the read, slowly but correctly. */
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

/* The values of both clocks at the same moment, accurate to `error_ticks`. */
struct ct_anchor {
    uint64_t ticks;
    uint64_t monotonic_ns;
    uint64_t error_ticks; /* how far the counter advanced while both clocks were read */
};
static_assert(sizeof(struct ct_anchor) == 24, "ct_anchor");

/* Reads the counter. On x86-64, counter reads are never reordered with each other, but a read may precede
 * earlier loads and stores that are still in flight, which lane.h takes into account. On aarch64, a bare read
 * may be speculative and out of order, even with respect to an earlier read ("Arm Architecture Reference
 * Manual for A-profile", on the generic timer). Without the isb, which is also in Linux's
 * __arch_get_hw_counter(), a call might seem to return before it was made. CNTVCTSS_EL0 would need no isb,
 * but only some processors have that register (FEAT_ECV), and each read would have to test for it. */
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

/* Reads both clocks `tries` times (1 or more), and returns the most accurate pair of readings. Each try reads
 * the counter before and after the other clock. */
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
