/* Wraps a call, and checks that the function preserves the callee-saved registers. The implementation is in
 * guard_<cpu>.S. Only one thread may use guard_call(), and only for one call at a time. */
#ifndef GUARD_H
#define GUARD_H

#include <stdint.h>

/* The callee-saved registers, in the order that guard_<cpu>.S uses. The ABI preserves only the lower 64 bits
 * of v8-v15, which are called d8-d15. */
#if defined(__x86_64__)
#define GUARD_NAMES "rbx", "rbp", "r12", "r13", "r14", "r15", "rsp"
enum { GUARD_REGISTERS = 7, GUARD_STACK_POINTER = 6 };
#elif defined(__aarch64__)
#define GUARD_NAMES                                                                                          \
    "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "sp", "d8", "d9", "d10",    \
        "d11", "d12", "d13", "d14", "d15"
enum { GUARD_REGISTERS = 20, GUARD_STACK_POINTER = 11 };
#endif

struct guard {
    void *function;                   /* the function to call */
    void *link;                       /* the return address in the caller */
    uint64_t indirect;                /* aarch64: the value of x8 at the function's entry */
    uint64_t saved[GUARD_REGISTERS];  /* the caller's values */
    uint64_t wanted[GUARD_REGISTERS]; /* the values at the function's entry; guard_call() sets that of the
                                       * stack pointer */
    uint64_t seen[GUARD_REGISTERS];   /* the values at the function's return */
};
extern struct guard guard;

/* Calls guard.function with the caller's arguments, which stay in their registers and on the stack, and
 * returns its result. Callers must cast guard_call to the type of guard.function. */
void guard_call(void);

/* Calls the function `name` through guard_call(), which is cast to the type of that function. */
#define GUARDED(name) (guard.function = (void *)(uintptr_t)(name), (__typeof__(&(name)))(uintptr_t)guard_call)

#endif
