/* The clock of the hot path. The wrappers and ct_enter() hold the function's arguments in registers, so a
 * reading of CLOCK_MONOTONIC must preserve them. The functions of hot_clock_<cpu>.S call ct_now_ns(), and
 * preserve all general registers except the one that returns the result. The compiler therefore need not save
 * any register, and the path that reads the counter costs the same as if there were no other clock. */
#ifndef CT_HOT_CLOCK_H
#define CT_HOT_CLOCK_H

#include "clock.h"
#include "producer.h"

#if defined(__x86_64__)
#define CT_HOT_CLOCK(function)                                                                               \
    ({                                                                                                       \
        uint64_t now_ns;                                                                                     \
        __asm__ volatile("call " #function : "=a"(now_ns) : : "cc");                                         \
        now_ns;                                                                                              \
    })
#elif defined(__aarch64__)
#define CT_HOT_CLOCK(function)                                                                               \
    ({                                                                                                       \
        register uint64_t now_ns __asm__("x0");                                                              \
        __asm__ volatile("bl " #function : "=r"(now_ns) : : "x30", "cc");                                    \
        now_ns;                                                                                              \
    })
#endif

/* Return the current time in ticks of the producer's lane. The calling file must be compiled without a red
 * zone. ct_hot_now_with_vectors() preserves the vector registers, which hold arguments of some functions. */
static inline __attribute__((always_inline)) uint64_t ct_hot_now(const struct ct_producer *self)
{
    return CT_LIKELY(self->is_counter) ? ct_counter_read() : CT_HOT_CLOCK(ct_hot_clock);
}
static inline __attribute__((always_inline)) uint64_t ct_hot_now_with_vectors(const struct ct_producer *self)
{
    return CT_LIKELY(self->is_counter) ? ct_counter_read() : CT_HOT_CLOCK(ct_hot_clock_with_vectors);
}

#endif
