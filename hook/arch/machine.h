/* The differences between processors, besides the trampolines: those lie in a folder for each. */
#ifndef CT_MACHINE_H
#define CT_MACHINE_H

/* Integer arguments that travel in registers. The tables of functions count, in 8-byte words, what a call has
 * beyond the six of x86-64, and name structs that are passed by value and have more than 16 bytes: these lie
 * on the stack on x86-64 (System V ABI, section 3.2.3), and are passed by reference on aarch64 (AAPCS64,
 * section 6.8.2, stage B). CT_STACK_WORDS() makes of that the words that this architecture has on the stack,
 * or more: words that are passed on without need harm nobody. */
#if defined(__x86_64__)
#define CT_REGISTER_ARGS 6
#define BY_VALUE(bytes)  (((bytes) + 7) / 8)
#define CT_GLIBC_BASE    "GLIBC_2.2.5" /* the oldest version of the C library's symbols */
#define CT_AUDIT_ARCH    AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define CT_REGISTER_ARGS 8
#define BY_VALUE(bytes)  1
#define CT_GLIBC_BASE    "GLIBC_2.17"
#define CT_AUDIT_ARCH    AUDIT_ARCH_AARCH64
#endif
#define CT_STACK_WORDS(beyond_six)                                                                           \
    ((beyond_six) + 6 > CT_REGISTER_ARGS ? (beyond_six) + 6 - CT_REGISTER_ARGS : 0)

/* Asks for the line at an address, to be written soon; the address need not be one. */
static inline void ct_prefetch_to_write(const void *address)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)address));
#else
    __builtin_prefetch(address, 1);
#endif
}

#endif
