/* The frames of signal handlers on a thread's stack. */
#ifndef CT_PROTO_SIGNAL_FRAME_H
#define CT_PROTO_SIGNAL_FRAME_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
