/* System calls of the hook's own, and the filters that forbid them.
 *
 * A filter (seccomp) may come at any moment and kill at the first call that it does not expect. So what the
 * hook does besides the program's own calls stands between ct_system_begin() and ct_system_end(); system.def
 * lists the calls that are made there. The C library's prctl() and syscall() pass by here, and a filter that
 * refuses one of them silences the hook before it is on: from then on ct_system_begin() says no, and what
 * would have needed a system call is left, and counted where it can be.
 *
 * A filter that a process had before it ran the program is not seen. Such filters must let the program start,
 * and are wide. */
#ifndef CT_SYSTEM_H
#define CT_SYSTEM_H

#include "compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Filters that are on, or about to be: 0 while system calls may be made. */
extern CT_LOCAL _Atomic uint32_t ct_system_silenced;

/* True if system calls may be made. It may end at any moment, but not between begin and end. */
static inline bool ct_system_allowed(void)
{
    return atomic_load_explicit(&ct_system_silenced, memory_order_relaxed) == 0;
}

/* False when none may be made; then there is nothing to end. They nest. */
bool ct_system_begin(void);
void ct_system_end(void);
/* For what must be ended once it was begun, whoever says no: waking those who wait between the two. */
void ct_system_begin_anyway(void);
/* Sets the thread's signal mask between the two, a bit for each signal from 1 on; returns the mask before. */
uint64_t ct_system_mask_signals(uint64_t mask);
/* True if no other thread is between the two. */
bool ct_system_alone(void);
/* Asks the kernel whether the 8 bytes around an address can be read. */
enum ct_readable { CT_READABLE_NO, CT_READABLE_YES, CT_READABLE_UNKNOWN };
enum ct_readable ct_system_readable(uint64_t address);
/* Returns true if the kernel would write the word at an address, a multiple of 4, at this moment. Changes
 * nothing. Returns false where no system call may be made, or the kernel lacks this one. */
bool ct_system_writable(const void *address);
/* The last answer for a page, for entries of a table that are written one right after the other. */
struct ct_page {
    uintptr_t number; /* 0: none was asked about */
    bool is_writable;
};
bool ct_page_writable(struct ct_page *page, const void *address);
/* A call was refused (an errno). Where the program has confined itself (Landlock), no other is tried. */
void ct_system_refused(int error);
/* In a fork's child, which has one thread. */
void ct_system_forget(void);

/* None may be made from now on. */
void ct_system_silence(void);
/* Landlock is on. */
void ct_system_confined(void);

/* Zeroed pages from a reserve, for when none may be asked for; NULL when it is used up. */
void *ct_system_reserve(uint64_t bytes);
enum { CT_RESERVE_BYTES = 4 << 20 };
void ct_system_set_reserve(void *memory);

#endif
