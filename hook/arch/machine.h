/* Differences between processor architectures. Each has a folder with its trampolines. */
#ifndef CT_MACHINE_H
#define CT_MACHINE_H

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

/* Recognizes the context that the kernel puts on the stack before it calls a signal handler. `words` points
 * to CT_SIGNAL_FRAME_BYTES that are readable. On x86-64, a struct ucontext begins with at most three flags
 * and no link, and contains the selector of 64-bit user code. On aarch64, it has no flags, and its first
 * extension contains the vector registers (arch/arm64/include/uapi/asm/sigcontext.h). */
#if defined(__x86_64__)
#define CT_SIGNAL_FRAME_BYTES (24 * 8)
#elif defined(__aarch64__)
#define CT_SIGNAL_FRAME_BYTES (59 * 8)
#endif
__attribute__((no_sanitize("address", "thread"))) static inline bool ct_is_signal_frame(const uint64_t *words)
{
#if defined(__x86_64__)
    enum { FLAGS_MAX = 7, PROCESSOR_FLAGS = 22, SELECTORS = 23, CODE = 0x33 };
    const uint64_t always_set = 0x202; /* bit 1, and interrupts are enabled */
    return words[0] <= FLAGS_MAX && words[1] == 0 && (words[SELECTORS] & UINT64_C(0xffffffffffff)) == CODE &&
           (words[PROCESSOR_FLAGS] & always_set) == always_set;
#elif defined(__aarch64__)
    enum { EXTENSION = 58, VECTORS = 0x46508001 };
    return words[0] == 0 && words[1] == 0 && (words[EXTENSION] & UINT32_MAX) == VECTORS;
#endif
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
