/* Functions that uprobes are set on. A uprobe is set in a file and slows down every caller of the function,
 * so each kind of probe has its own copy of the function. These functions take the address of their frame, so
 * their first instruction is a push, as in most driver functions. The kernel can emulate a push. Most other
 * instructions would cost an additional single step. */
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
