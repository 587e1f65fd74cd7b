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
#define CT_AUDIT_ARCH    AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define CT_REGISTER_ARGS 8
#define BY_VALUE(bytes)  1
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

/* Makes a system call; -error when it fails. */
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
