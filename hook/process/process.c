#include "process.h"

#include "attach.h"
#include "current.h"
#include "denied_counter.h"
#include "descriptor.h"
#include "driver_functions.h"
#include "find_daemon.h"
#include "fork.h"
#include "gpu.h"
#include "loader.h"
#include "lock.h"
#include "object_names.h"
#include "row_selection.h"
#include "segment_file.h"
#include "symbol.h"
#include "system.h"
#include "table.h"
#include "test_point.h"
#include "thread.h"
#include "unrecorded.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t exec_ns; /* the time when the program started; 0 until known */

/* ---- forks and exits ---- */

/* Drops all state inherited from the parent, so that the child looks for a daemon at its next call. Runs as
 * an atfork handler in the child of fork(), and is called directly in the child of a clone() that ran no
 * handlers. */
static void start_anew(void)
{
    CT_TEST_POINT("process.child_begun");
    if (ct_system_begin()) {
        ct_thread_redirect();
        ct_system_end();
    }
    CT_TEST_POINT("process.child_redirected");
    ct_driver_fork_child();
    ct_attach_forget();
    ct_gpu_forget();
    ct_segment_forget();
    ct_daemon_forget();
    ct_unrecorded_forget();
    ct_named_forget();
    ct_descriptor_forget();
    ct_process_lock_forget();
    ct_table_lock_forget();
    ct_system_forget();
    ct_thread_number_forget();
    ct_fork_forget();
    CT_TEST_POINT("process.child_dormant");
    ct_rows_forget_numbers();
    ct_thread_forget();
    CT_TEST_POINT("process.child_ready");
}

/* glibc implements pthread_atfork() and at_quick_exit() with these functions. The symbols are weak, since
 * programs that use another C library (musl) also load the hook, which then does nothing. */
extern void *__dso_handle __attribute__((visibility("hidden")));
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *object)
    __attribute__((weak));
extern int __cxa_at_quick_exit(void (*function)(void *), void *object) __attribute__((weak));
extern const char *gnu_get_libc_version(void) __attribute__((weak));

static void (*next_exit)(int status);
static pid_t (*next_fork)(void);

static void mark_exiting(void)
{
    struct ct_segment *segment = ct_process_current();
    const bool is_unrecorded = atomic_load_explicit(&ct_is_unrecorded, memory_order_relaxed);
    /* The child of vfork() shares its parent's memory. */
    if ((!segment && !is_unrecorded) || ct_fork_memory() != CT_MEMORY_OWN)
        return;
    ct_unrecorded_end();
    if (!segment)
        return;
    ct_gpu_end();
    CT_TEST_POINT("process.exiting");
    atomic_fetch_or(&segment->flags, CT_SEGMENT_EXITING);
    CT_TEST_POINT("process.marked");
}

static void mark_exiting_quickly(void *unused)
{
    (void)unused;
    mark_exiting();
}

/* Returns whether the calling thread may not read the counter. If the kernel cannot be asked whether the
 * thread has inherited this, assumes so. */
static bool has_lost_counter(void)
{
    if (ct_counter_access == CT_COUNTER_UNKNOWN) {
        int mode = PR_TSC_SIGSEGV;
        if (ct_system_begin()) {
            if (prctl(PR_GET_TSC, (uint64_t)(uintptr_t)&mode, 0, 0, 0) != 0)
                mode = PR_TSC_ENABLE;
            ct_system_end();
        }
        ct_counter_access = mode == PR_TSC_SIGSEGV ? CT_COUNTER_DENIED : CT_COUNTER_ALLOWED;
    }
    return ct_counter_is_denied();
}

/* Also called directly, if a traced call is made before the constructors run. */
__attribute__((constructor)) static void begin(void)
{
    if (exec_ns)
        return;
    /* Threads may have lost the counter before a visit loaded the hook. */
    if (ct_symbol_is_visitor()) {
        atomic_store_explicit(&ct_counter_was_denied, true, memory_order_relaxed);
        has_lost_counter();
    }
    exec_ns = ct_monotonic_ns();
    ct_fork_begin();
    next_exit = (void (*)(int))(uintptr_t)ct_symbol_of_library("_exit");
    next_fork = (pid_t(*)(void))(uintptr_t)ct_symbol_of_library("_Fork");
    if (__register_atfork)
        __register_atfork(ct_driver_fork_begins, ct_driver_fork_ends, start_anew, __dso_handle);
    if (__cxa_at_quick_exit) /* quick_exit() ends with the C library's own _exit(), not the hook's */
        __cxa_at_quick_exit(mark_exiting_quickly, __dso_handle);
    if (!gnu_get_libc_version)
        ct_system_silence();
}

/* Marks a process that calls _exit(). The child of vfork() calls _exit(), too, but must not mark its parent.
 * If the child has installed a filter, it is recognized by the value of ct_vforked, without a call to
 * getpid(). */
static void mark_exiting_at_once(void)
{
    if (ct_vforked == CT_VFORK_FILTERED)
        ct_vforked = CT_VFORK_CALLED;
    else
        mark_exiting();
}

/* Does not unmap or free any memory, since later exit handlers and destructors may still call the driver. */
__attribute__((destructor)) static void end(void)
{
    mark_exiting();
}

/* _exit() runs no destructors. Without this function, processes that call it, such as forked children of
 * Python, would count as killed. Calls the next interposed _exit(), such as a sanitizer's. The C library's
 * own _exit() only makes the system call. */
__attribute__((noreturn, visibility("default"))) void _exit(int status)
{
    mark_exiting_at_once();
    if (next_exit)
        next_exit(status);
    for (;;)
        syscall(SYS_exit_group, status);
}
__attribute__((noreturn, visibility("default"), alias("_exit"))) void _Exit(int status);

/* _Fork() (glibc 2.34) is a fork() for signal handlers that runs no atfork handlers. If a signal handler
 * interrupted the hook and called _Fork(), the child would continue to write to the parent's lane without
 * this function. */
__attribute__((visibility("default"))) pid_t _Fork(void)
{
    ct_driver_fork_begins();
    const pid_t child = next_fork ? next_fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0)
        start_anew();
    else
        ct_driver_fork_ends();
    return child;
}

/* ---- the segment ---- */

/* Only one thread looks for the daemon, at most once a second, while other threads continue without
 * recording. Calls in a dormant process reach this function, but make no system call until a second has
 * elapsed since the last search. */
static struct ct_segment *look(void)
{
    /* Before the C library is ready, the environment is unknown. The search would then find the default
     * session, which may be the wrong one. */
    if (!ct_loader_ready() || !ct_system_allowed() || !ct_attach_is_due() || !ct_system_begin())
        return NULL;
    struct ct_segment *segment = NULL;
    begin();
    if (!ct_fork_is_borrower()) {
        if (ct_fork_pid() != (int32_t)syscall(SYS_getpid))
            start_anew();
        segment = ct_attach(exec_ns);
    }
    ct_system_end();
    return segment;
}

struct ct_segment *ct_process_segment(void)
{
    struct ct_segment *segment = ct_process_current();
    if (segment) {
        const enum ct_fork_memory memory = ct_fork_memory();
        if (memory == CT_MEMORY_OWN)
            return segment;
        if (memory == CT_MEMORY_BORROWED)
            return NULL;
        start_anew(); /* the child of a bare clone() */
    }
    return look();
}

static void count_unrecorded(void)
{
    if (CT_UNLIKELY(atomic_load_explicit(&ct_is_unrecorded, memory_order_relaxed)))
        ct_unrecorded_count();
}

bool ct_process_may_read_clock(void)
{
    return !has_lost_counter();
}

enum ct_attached ct_process_attach(uintptr_t frame)
{
    if (ct_self == &ct_untraced)
        return CT_ATTACHED_NOT;
    if (ct_producer_is_stale(ct_self))
        ct_detach();
    if (ct_self->lane)
        return CT_ATTACHED;
    if (CT_UNLIKELY(atomic_load_explicit(&ct_counter_was_denied, memory_order_relaxed)) &&
        has_lost_counter()) {
        if (ct_process_segment())
            return CT_ATTACHED_NOWHERE;
        count_unrecorded();
        return CT_ATTACHED_NOT;
    }
    /* If another thread has just abandoned the segment, try again with the next one. */
    for (uint32_t epoch = ct_process_epoch();; epoch = ct_process_epoch()) {
        const bool was_there = ct_process_current() != NULL;
        struct ct_segment *segment = ct_process_segment();
        if (segment && ct_thread_take(segment, frame))
            break;
        if (!segment && !was_there) {
            count_unrecorded();
            return CT_ATTACHED_NOT;
        }
        if (epoch == ct_process_epoch()) /* no lane is available, or the segment belongs to a vfork()
                                          * parent */
            return CT_ATTACHED_NOWHERE;
        if (!segment)
            return CT_ATTACHED_NOT;
    }
    /* Read `ct_self` only once, since a signal handler may fork here, and the child has no lane. */
    struct ct_producer *const self = *(struct ct_producer *volatile *)&ct_self;
    if (self->lane && ct_wants_doorbell(self->lane, self->position))
        ct_attach_apply(self);
    return ct_self->lane ? CT_ATTACHED : CT_ATTACHED_NOT;
}
