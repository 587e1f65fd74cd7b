/* Functions for uprobes. A probe is in the file and slows down every caller of the function, so each kind of
 * probe has its own copy. They take their frame's address, so they begin with the push that most functions of
 * a driver begin with. The kernel emulates that push; any other first instruction costs the peer an
 * additional single step. */
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
