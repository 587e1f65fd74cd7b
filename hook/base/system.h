/* The hook's own system calls, and the seccomp filters that may forbid them.
 *
 * A filter may be installed at any moment, and may kill the process at the first unexpected system call. All
 * system calls that the hook makes in addition to the program's are therefore made between ct_system_begin()
 * and ct_system_end(), and are listed in system.def. The hook interposes the C library's prctl() and
 * syscall(). If a filter would refuse one of the listed calls, the hook is silenced before the filter is
 * installed. ct_system_begin() then returns false, and work that needs a system call is skipped, and counted
 * where possible.
 *
 * The hook does not notice a filter that was installed before the process executed the program, but such a
 * filter must be permissive enough to let the program start. */
#ifndef CT_SYSTEM_H
#define CT_SYSTEM_H

#include "compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The number of reasons not to make system calls, such as a filter that has been or is about to be installed.
 * 0 while system calls are allowed. */
extern CT_LOCAL _Atomic uint32_t ct_system_silenced;

/* True if system calls are allowed. The result may change at any moment, except between ct_system_begin() and
 * ct_system_end(). */
static inline bool ct_system_allowed(void)
{
    return atomic_load_explicit(&ct_system_silenced, memory_order_relaxed) == 0;
}

/* ct_system_begin() returns false if system calls are not allowed. Call ct_system_end() only if
 * ct_system_begin() returned true. The pairs may be nested. */
bool ct_system_begin(void);
void ct_system_end(void);
/* Like ct_system_begin(), but succeeds even if the hook is silenced. Used only to finish releasing a lock,
 * which includes waking its waiters. */
void ct_system_begin_anyway(void);
/* Blocks the thread's signals, except those in fault_signals.h, which stay as they are. Returns the
 * previous mask, in which the lowest bit is signal 1. Both functions must be called between ct_system_begin()
 * and ct_system_end(). */
uint64_t ct_system_block_signals(void);
void ct_system_mask_signals(uint64_t mask);
/* True if no other thread is between ct_system_begin() and ct_system_end(). */
bool ct_system_alone(void);
/* Checks with the kernel whether the aligned 8-byte word that contains the address is readable. */
enum ct_readable { CT_READABLE_NO, CT_READABLE_YES, CT_READABLE_UNKNOWN };
enum ct_readable ct_system_readable(uint64_t address);
/* True if the word at `address`, which must be a multiple of 4, is currently writable. Leaves the word
 * unchanged. Returns false if system calls are not allowed, or if the kernel lacks FUTEX_WAKE_OP. */
bool ct_system_writable(const void *address);
/* The last result of ct_page_writable(). It is kept to save system calls when a table's entries are written
 * in sequence. */
struct ct_page {
    uintptr_t number; /* 0: none checked yet */
    bool is_writable;
};
bool ct_page_writable(struct ct_page *page, const void *address);
/* Reports that a system call failed with the given errno. If the program has confined itself (Landlock), the
 * hook makes no more system calls after a refusal. */
void ct_system_refused(int error);
/* In the child of a fork, reduces the count of unfinished ct_system_begin() calls to those made by the only
 * remaining thread. */
void ct_system_forget(void);

/* Forbids system calls from now on. */
void ct_system_silence(void);
/* Reports that the program has confined itself with Landlock. */
void ct_system_confined(void);

/* Returns zeroed pages from a reserve, for use while system calls are not allowed. Returns NULL if too little
 * of the reserve is left. */
void *ct_system_reserve(uint64_t bytes);
enum { CT_RESERVE_BYTES = 4 << 20 };
void ct_system_set_reserve(void *memory);

#endif
