/* Interposes the C library's prctl() and syscall(), which programs use to install system call filters. Before
 * a filter is installed, prepares the hook to work without system calls (system.h). Afterwards, checks
 * whether the filter forbids the hook's system calls. Also stops recording a thread that forbids itself to
 * read the processor's counter (denied_counter.h). Neither is noticed if it is done with inline assembly. */
#include "bound.h"
#include "current.h"
#include "denied_counter.h"
#include "error_guard.h"
#include "filter.h"
#include "fork.h"
#include "gpu.h"
#include "process.h"
#include "row_selection.h"
#include "rows.h"
#include "symbol.h"
#include "system.h"
#include "thread.h"
#include "unrecorded.h"

#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif
#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_OFF          0
#endif
#ifndef SECCOMP_FILTER_FLAG_NEW_LISTENER
#define SECCOMP_FILTER_FLAG_NEW_LISTENER (1UL << 3)
#endif

/* ---- before a filter ---- */

enum { DRAIN_MS = 1000 };

/* Gets the resources that will be unavailable once the filter is installed: a segment, which the process may
 * need later, a lane for this thread, memory for names, and a function number for each function that the
 * process may call. `frame` is the stack address of the call that installs the filter. */
static void prepare(uintptr_t frame)
{
    static void *_Atomic reserve;
    if (!ct_counter_is_denied())
        ct_process_attach(frame);
    if (!ct_process_current())
        return;
    for (uint32_t row = 0; row < CT_NAMED_COUNT; row++) {
        if (ct_rows[row].real)
            ct_row_define(row);
    }
    if (!reserve && ct_system_begin()) { /* reserves only address space, not memory */
        reserve = ct_bound_map(NULL, CT_RESERVE_BYTES, PROT_READ | PROT_WRITE, -1, 0);
        ct_system_set_reserve(reserve);
        ct_system_end();
    }
}

/* Waits for other threads that are in the hook's system calls, since a filter may apply to all threads. */
static void drain(void)
{
    const struct timespec pause = { .tv_nsec = 1000000 };
    for (int i = 0; i < DRAIN_MS && !ct_system_alone(); i++)
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

/* Stops the hook's system calls before a filter is installed. In the child of vfork(), whose filter does not
 * apply to its parent, returns false without stopping these calls. */
static bool hush(uintptr_t frame)
{
    CT_ERROR_GUARD;
    bool hushed = true, first = false;
    if (ct_system_begin()) {
        first = hushed = !ct_fork_is_borrower();
        ct_system_end();
        if (!hushed)
            ct_vforked = CT_VFORK_FILTERED;
    }
    /* In the child of a bare clone(), the segment belongs to the parent. */
    if (first && ct_fork_memory() == CT_MEMORY_OWN)
        prepare(frame);
    if (hushed)
        atomic_fetch_add(&ct_system_silenced, 1);
    if (first)
        drain();
    return hushed;
}

/* ---- entry points ---- */

typedef long syscall_function(long number, ...);
typedef int prctl_function(int option, uint64_t a, uint64_t b, uint64_t c, uint64_t d);
/* The next definition of syscall(), which the trampoline jumps to. */
syscall_function *ct_next_syscall;
syscall_function *ct_find_syscall(void);
static prctl_function *_Atomic next_prctl;

long ct_syscall(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e);
int ct_prctl_entry(int option, uint64_t a, uint64_t b, uint64_t c, uint64_t d) __asm__("prctl");

/* Any thread may be the first to write `ct_next_syscall`, since all write the same value. */
syscall_function *ct_find_syscall(void)
{
    return ct_next_syscall = (syscall_function *)(uintptr_t)ct_symbol_of_library("syscall");
}

static prctl_function *find_prctl(void)
{
    prctl_function *found = (prctl_function *)(uintptr_t)ct_symbol_of_library("prctl");
    atomic_store_explicit(&next_prctl, found, memory_order_relaxed);
    return found;
}

/* If prctl() or syscall() is called before this constructor runs, the call looks up the function itself. */
__attribute__((constructor)) static void find_next(void)
{
    ct_find_syscall();
    find_prctl();
}

/* What a system call is about to do, and what the hook did before it. */
struct restriction {
    enum { RESTRICT_NOTHING, RESTRICT_CALLS, RESTRICT_STRICTLY, RESTRICT_COUNTER, RESTORE_COUNTER } kind;
    const void *filter; /* if CALLS */
    bool listens;       /* a successful call returns a descriptor */
    bool is_for_all;    /* threads */
    bool hushed, denied, closed;
};

static struct restriction by_prctl(int option, uint64_t a, uint64_t b)
{
    struct restriction found = { RESTRICT_NOTHING };
    if (option == PR_SET_TSC)
        found.kind = a == PR_TSC_SIGSEGV ? RESTRICT_COUNTER : RESTORE_COUNTER;
    else if (option == PR_SET_SYSCALL_USER_DISPATCH && a != PR_SYS_DISPATCH_OFF)
        found.kind = RESTRICT_CALLS; /* by no filter that could be checked, and for good */
    else if (option == PR_SET_SECCOMP)
        found.kind = a == SECCOMP_MODE_STRICT ? RESTRICT_STRICTLY : RESTRICT_CALLS;
    if (option == PR_SET_SECCOMP && found.kind == RESTRICT_CALLS)
        found.filter = (const void *)(uintptr_t)b;
    return found;
}

static struct restriction by_seccomp(uint64_t operation, uint64_t flags, uint64_t argument)
{
    struct restriction found = { RESTRICT_NOTHING };
    if (operation == SECCOMP_SET_MODE_STRICT)
        found.kind = RESTRICT_STRICTLY;
    if (operation == SECCOMP_SET_MODE_FILTER)
        found = (struct restriction){ .kind = RESTRICT_CALLS,
                                      .filter = (const void *)(uintptr_t)argument,
                                      .listens = flags & SECCOMP_FILTER_FLAG_NEW_LISTENER,
                                      .is_for_all = flags & SECCOMP_FILTER_FLAG_TSYNC };
    return found;
}

/* The lane is given back first. The calls that a signal handler makes afterwards find no lane, and find the
 * counter denied. The child of vfork() has its parent's lane. */
static bool deny_counter(uintptr_t frame)
{
    CT_ERROR_GUARD;
    if (ct_fork_memory() != CT_MEMORY_OWN)
        return false;
    ct_counter_deny(ct_now());
    ct_thread_withdraw(frame);
    return true;
}

static void before(struct restriction *restriction)
{
    const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    if (restriction->kind == RESTRICT_STRICTLY || restriction->kind == RESTRICT_COUNTER)
        restriction->denied = deny_counter(frame);
    restriction->closed = restriction->is_for_all;
    if (restriction->closed) /* the filter is also for the recording's thread, which makes system calls */
        ct_gpu_close();
    if (restriction->kind == RESTRICT_STRICTLY || restriction->kind == RESTRICT_CALLS)
        restriction->hushed = hush(frame);
}

/* Allows the hook's system calls again if the call failed, or if the filter allows them. */
static void after(const struct restriction *restriction, long result)
{
    const bool on = result == 0 || (restriction->listens && result > 0);
    if (restriction->hushed && on && restriction->filter && !ct_filter_passes_reports(restriction->filter))
        ct_unrecorded_forbid();
    if (restriction->hushed && (!on || (restriction->filter && ct_filter_passes(restriction->filter))))
        atomic_fetch_sub(&ct_system_silenced, 1);
    if (restriction->closed)
        ct_gpu_open();
    if (on ? restriction->kind == RESTORE_COUNTER : restriction->denied)
        ct_counter_access = CT_COUNTER_ALLOWED;
}

/* Replaces syscall(). None of the three system calls handled here takes more than five arguments. */
long ct_syscall(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
    syscall_function *next = ct_next_syscall ? ct_next_syscall : ct_find_syscall();
    struct restriction restriction = { RESTRICT_NOTHING };
    if (number == SYS_landlock_restrict_self)
        ct_system_confined();
    else if (number == SYS_prctl)
        restriction = by_prctl((int)a, b, c);
    else if (number == SYS_seccomp)
        restriction = by_seccomp(a, b, c);
    before(&restriction);
    const long result = next(number, a, b, c, d, e);
    after(&restriction, result);
    return result;
}

/* Replaces int prctl(int option, ...), with named arguments, like the hook's ioctl(). */
static __attribute__((noinline)) int prctl_slow(int option, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    prctl_function *next = atomic_load_explicit(&next_prctl, memory_order_relaxed);
    if (!next)
        next = find_prctl();
    struct restriction restriction = by_prctl(option, a, b);
    before(&restriction);
    const int result = next(option, a, b, c, d);
    after(&restriction, result);
    return result;
}

__attribute__((visibility("default"))) int ct_prctl_entry(int option, uint64_t a, uint64_t b, uint64_t c,
                                                          uint64_t d)
{
    prctl_function *next = atomic_load_explicit(&next_prctl, memory_order_relaxed);
    if (CT_UNLIKELY(option == PR_SET_SECCOMP || option == PR_SET_TSC ||
                    option == PR_SET_SYSCALL_USER_DISPATCH || !next))
        return prctl_slow(option, a, b, c, d);
    return next(option, a, b, c, d);
}
