/* The interface between the x86-64 trampoline and the wrappers (wrap.c). */
#ifndef CT_WRAPPER_H
#define CT_WRAPPER_H

#include <stdint.h>

/* Declares the registers in which the trampoline passes its results. They hold no arguments, and compilers do
 * not use them before the function's first statement. */
#define FOUND_BY_TRAMPOLINE(row, self, place)                                                                \
    register const struct ct_row *row##_found __asm__("r11");                                                \
    register struct ct_producer *self##_found __asm__("r10");                                                \
    register uintptr_t place##_found __asm__("rax");                                                         \
    __asm__ volatile("" : "=r"(row##_found), "=r"(self##_found), "=r"(place##_found));                       \
    const struct ct_row *const row = row##_found;                                                            \
    struct ct_producer *const self = self##_found;                                                           \
    const uintptr_t place = place##_found

typedef uint64_t word;

/* Returns the words pushed by the caller, which follow the return address. They are not declared as
 * parameters, since a compiler might load a parameter into a result register before that register is read. */
static inline const word *stack_words(uintptr_t place)
{
    return (const word *)place + 1;
}

/* The name of a wrapper. Each wrapper exists once for each clock: ct_wrap_… reads the counter, and
 * ct_wrap_clock_… reads CLOCK_MONOTONIC. */
#ifndef CT_WRAP
#define CT_WRAP(name) ct_wrap_##name
#endif

/* Places the wrappers next to the trampolines, on as few pages as possible. */
#define BESIDE_TRAMPOLINES __attribute__((section(".text.hot")))

BESIDE_TRAMPOLINES word CT_WRAP(plain)(word a, word b, word c, word d, word e, word f);
BESIDE_TRAMPOLINES word CT_WRAP(plain_2)(word a, word b, word c, word d, word e, word f);
BESIDE_TRAMPOLINES word CT_WRAP(launch)(word a, word b, word c, word d, word e, word f);
BESIDE_TRAMPOLINES word CT_WRAP(launch_ex)(word a, word b, word c, word d, word e, word f);

#endif
