/* How the trampoline of x86-64 jumps into a wrapper (wrap.c). */
#ifndef CT_WRAPPER_H
#define CT_WRAPPER_H

#include <stdint.h>

/* The registers in which the trampoline leaves what it found; no argument travels there, and what a compiler
 * puts before the first statement of such a function does not use it. */
#define FOUND_BY_TRAMPOLINE(row, self, place)                                                                \
    register const struct ct_row *row##_found __asm__("r11");                                                \
    register struct ct_producer *self##_found __asm__("r10");                                                \
    register uintptr_t place##_found __asm__("rax");                                                         \
    __asm__ volatile("" : "=r"(row##_found), "=r"(self##_found), "=r"(place##_found));                       \
    const struct ct_row *const row = row##_found;                                                            \
    struct ct_producer *const self = self##_found;                                                           \
    const uintptr_t place = place##_found

typedef uint64_t word;

/* The words that the caller has laid on the stack, behind where the call returns to. They are no parameters,
 * which a compiler may fetch before the registers above are read, and into one of these. */
static inline const word *stack_words(uintptr_t place)
{
    return (const word *)place + 1;
}

/* They lie beside the trampolines, in as few pages as can be. */
#define BESIDE_TRAMPOLINES __attribute__((section(".text.hot")))

BESIDE_TRAMPOLINES word ct_wrap_plain(word a, word b, word c, word d, word e, word f);
BESIDE_TRAMPOLINES word ct_wrap_plain_2(word a, word b, word c, word d, word e, word f);
BESIDE_TRAMPOLINES word ct_wrap_launch(word a, word b, word c, word d, word e, word f);
BESIDE_TRAMPOLINES word ct_wrap_launch_ex(word a, word b, word c, word d, word e, word f);

#endif
