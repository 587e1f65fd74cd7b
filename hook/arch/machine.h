/* Differences between processor architectures. Each has a folder with its trampolines. */
#ifndef CT_MACHINE_H
#define CT_MACHINE_H

#include "signal_frame.h"

#include <stdbool.h>
#include <stdint.h>

/* CT_REGISTER_ARGS is the number of integer arguments passed in registers. For each function, the tables give
 * the number of 8-byte words that its arguments need beyond the six registers of x86-64. They also mark
 * structs of more than 16 bytes that are passed by value. On x86-64, a struct passed by value is on the stack
 * (System V ABI, section 3.2.3). On aarch64, such a struct is passed by reference (AAPCS64, section 6.8.2,
 * stage B). CT_STACK_WORDS() converts a word count from a table to an upper bound for the stack words on this
 * architecture. Forwarding too many words does no harm. */
#if defined(__x86_64__)
#define CT_REGISTER_ARGS 6
#define BY_VALUE(bytes)  (((bytes) + 7) / 8)
#define CT_AUDIT_ARCH    AUDIT_ARCH_X86_64
#define CT_VDSO_CLOCK    "__vdso_clock_gettime" /* vdso(7) */
#elif defined(__aarch64__)
#define CT_REGISTER_ARGS 8
#define BY_VALUE(bytes)  1
#define CT_AUDIT_ARCH    AUDIT_ARCH_AARCH64
#define CT_VDSO_CLOCK    "__kernel_clock_gettime"
#endif
#define CT_STACK_WORDS(beyond_six)                                                                           \
    ((beyond_six) + 6 > CT_REGISTER_ARGS ? (beyond_six) + 6 - CT_REGISTER_ARGS : 0)

/* Prefetches the cache line at an address that will be written soon. The address may be invalid. */
static inline void ct_prefetch_to_write(const void *address)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)address));
#else
    __builtin_prefetch(address, 1);
#endif
}

/* Returns the thread pointer, to which the offsets of thread-local variables are relative. */
static inline void *ct_thread_pointer(void)
{
    void *pointer;
#if defined(__x86_64__)
    __asm__("movq %%fs:0, %0" : "=r"(pointer));
#elif defined(__aarch64__)
    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
#endif
    return pointer;
}

/* Makes a system call. Returns -error on failure. */
static inline long ct_kernel_call(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
    long result;
    register long fourth __asm__("r10") = d;
    register long fifth __asm__("r8") = e;
    register long sixth __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long of __asm__("x8") = number;
    register long first __asm__("x0") = a;
    register long second __asm__("x1") = b;
    register long third __asm__("x2") = c;
    register long fourth __asm__("x3") = d;
    register long fifth __asm__("x4") = e;
    register long sixth __asm__("x5") = f;
    __asm__ volatile("svc #0"
                     : "+r"(first)
                     : "r"(of), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "memory");
    return first;
#endif
}

#endif
