#include "process.h"

#include "attach.h"
#include "current.h"
#include "descriptor.h"
#include "driver_functions.h"
#include "find_daemon.h"
#include "fork.h"
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

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t image_ns; /* when the program began, 0 until that is known */

/* ---- forks and exits ---- */

/* Everything of the parent's is let go; the child looks for a daemon at its next call. Runs in the child of
 * fork(), and by hand in the child of a clone() that ran no handlers. */
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
    ct_segment_forget();
    ct_daemon_forget();
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

/* pthread_atfork() and at_quick_exit() of glibc come to these, and not all have them: a program of another C
 * library (musl) loads the hook as well, which does nothing there. */
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
    /* In the child of vfork() the memory is the parent's. */
    if (!segment || ct_fork_memory() != CT_MEMORY_OWN)
        return;
    CT_TEST_POINT("process.exiting");
    atomic_fetch_or(&segment->flags, CT_SEGMENT_EXITING);
    CT_TEST_POINT("process.marked");
}

static void mark_exiting_quickly(void *unused)
{
    (void)unused;
    mark_exiting();
}

/* Also called by hand when a call comes before the constructors. */
__attribute__((constructor)) static void begin(void)
{
    if (image_ns)
        return;
    image_ns = ct_monotonic_ns();
    ct_fork_begin();
    next_exit = (void (*)(int))(uintptr_t)ct_symbol_of_library("_exit");
    next_fork = (pid_t(*)(void))(uintptr_t)ct_symbol_of_library("_Fork");
    if (__register_atfork)
        __register_atfork(ct_driver_fork_begins, ct_driver_fork_ends, start_anew, __dso_handle);
    if (__cxa_at_quick_exit) /* it ends in the C library's own _exit(), which is not ours */
        __cxa_at_quick_exit(mark_exiting_quickly, __dso_handle);
    if (!gnu_get_libc_version)
        ct_system_silence();
}

/* Marks a process that ends by _exit(), as the child of vfork() does. Where a filter is on, it is not asked
 * for its number. */
static void mark_exiting_at_once(void)
{
    if (ct_vforked == CT_VFORK_FILTERED)
        ct_vforked = CT_VFORK_CALLED;
    else
        mark_exiting();
}

/* Nothing is unmapped or freed: exit handlers and destructors that run later may still call the driver. */
__attribute__((destructor)) static void end(void)
{
    mark_exiting();
}

/* _exit() runs no destructor, and is how forked children of Python end: without this they would count as
 * killed. Whoever else interposes it (the sanitizers do) comes next; the system call is all that the C
 * library's own does. */
__attribute__((noreturn, visibility("default"))) void _exit(int status)
{
    mark_exiting_at_once();
    if (next_exit)
        next_exit(status);
    for (;;)
        syscall(SYS_exit_group, status);
}
__attribute__((noreturn, visibility("default"), alias("_exit"))) void _Exit(int status);

/* _Fork() (glibc 2.34) is fork() for signal handlers: it runs no atfork handler. The child of one that
 * interrupted the hook would go on in its parent's lane. */
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

/* Once a second at most, one thread looks for the daemon; the others go on without. A dormant process's calls
 * come here: no system call before the second is over. */
static struct ct_segment *look(void)
{
    /* The session that would be found is the default one, which may be somebody else's. */
    if (!ct_loader_ready() || !ct_system_allowed() || !ct_attach_is_due() || !ct_system_begin())
        return NULL;
    struct ct_segment *segment = NULL;
    begin();
    if (!ct_fork_is_borrower()) {
        if (ct_fork_pid() != (int32_t)syscall(SYS_getpid))
            start_anew();
        segment = ct_attach(image_ns);
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

enum ct_attached ct_process_attach(uintptr_t frame)
{
    if (ct_producer_is_stale(ct_self))
        ct_detach();
    if (ct_self->lane)
        return CT_ATTACHED;
    /* If another thread gives the segment up, tries again with the next one. */
    for (uint32_t epoch = ct_process_epoch();; epoch = ct_process_epoch()) {
        const bool was_there = ct_process_current() != NULL;
        struct ct_segment *segment = ct_process_segment();
        if (segment && ct_thread_take(segment, frame))
            break;
        if (!segment && !was_there)
            return CT_ATTACHED_NOT;
        if (epoch == ct_process_epoch()) /* there is no lane, or the segment is the parent's of a vfork() */
            return CT_ATTACHED_NOWHERE;
        if (!segment)
            return CT_ATTACHED_NOT;
    }
    /* Read once: a signal handler may fork in here. Its child has no lane. */
    struct ct_producer *const self = *(struct ct_producer *volatile *)&ct_self;
    if (self->lane && ct_wants_doorbell(self->lane, self->position))
        ct_attach_heed(self);
    return ct_self->lane ? CT_ATTACHED : CT_ATTACHED_NOT;
}
