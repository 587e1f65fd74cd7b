/* Functions for uprobes. A probe stands in the file, so everyone who calls the function pays: each kind of
 * probe has a copy. They want their frame's address, and so begin with the push that most functions of a
 * driver begin with: the kernel emulates that, while another first instruction costs the peer a single step
 * more. */
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
