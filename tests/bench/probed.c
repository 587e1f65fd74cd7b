/* Functions for uprobes. A probe is set in the file and slows down every caller of the function, so each kind
 * of probe has its own copy. These functions take the address of their frame, so their first instruction is a
 * push, as in most driver functions. The kernel can emulate a push; for most other instructions, it would
 * need an additional single step. */
#include "null_driver.h"

#define EXPORT __attribute__((visibility("default"), noinline))

EXPORT int bench_probed_tracefs(void **context)
{
    __asm__ volatile("" : : "r"(__builtin_frame_address(0)) : "memory");
    *context = (void *)(uintptr_t)0x1000;
    return 0;
}

EXPORT int bench_probed_bpftrace(void **context)
{
    __asm__ volatile("" : : "r"(__builtin_frame_address(0)) : "memory");
    *context = (void *)(uintptr_t)0x1000;
    return 0;
}
