/* The clock of the hot path. A reading of CLOCK_MONOTONIC is a function call, which overwrites registers. A
 * wrapper therefore exists once for each clock (wrap_clock.c), so that the wrapper that reads the counter
 * keeps all values in registers. ct_enter() serves both clocks. It reads CLOCK_MONOTONIC through a function
 * of hot_clock_<cpu>.S, which preserves all registers except the one that returns the result. The path that
 * reads the counter then costs the same as if there were no other clock. */
#ifndef CT_HOT_CLOCK_H
#define CT_HOT_CLOCK_H

#include "clock.h"
#include "producer.h"

#if defined(__x86_64__)
#define CT_HOT_CLOCK()                                                                                       \
    ({                                                                                                       \
        uint64_t now_ns;                                                                                     \
        __asm__ volatile("call ct_hot_clock" : "=a"(now_ns) : : "cc");                                       \
        now_ns;                                                                                              \
    })
#elif defined(__aarch64__)
#define CT_HOT_CLOCK()                                                                                       \
    ({                                                                                                       \
        register uint64_t now_ns __asm__("x0");                                                              \
        __asm__ volatile("bl ct_hot_clock" : "=r"(now_ns) : : "x30", "cc");                                  \
        now_ns;                                                                                              \
    })
#endif

/* Whether the producer's lane counts in ticks of the processor's counter. A file that serves lanes of only
 * one clock defines this before it includes a header. */
#ifndef CT_HOT_IS_COUNTER
#define CT_HOT_IS_COUNTER(self) CT_LIKELY((self)->is_counter)
#endif

/* Returns the current time in ticks of the producer's lane. */
static inline __attribute__((always_inline)) uint64_t ct_hot_now(const struct ct_producer *self)
{
    (void)self;
    return CT_HOT_IS_COUNTER(self) ? ct_counter_read() : ct_monotonic_ns();
}

/* The same, but preserves the registers that hold the arguments of a function, including vector registers.
 * The calling file must be compiled without a red zone. */
static inline __attribute__((always_inline)) uint64_t ct_hot_now_on_entry(const struct ct_producer *self)
{
    return CT_LIKELY(self->is_counter) ? ct_counter_read() : CT_HOT_CLOCK();
}

#endif
