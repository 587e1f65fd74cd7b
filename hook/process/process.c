/* The process: when it has a segment (segment_file.c) for a daemon that find_daemon.c found, when it lets go of
 * that, and what is started anew in a fork's child. Called by thread.c, functions.c and record.c, never on
 * the hot path. */
#include "descriptor.h"
#include "lock.h"
#include "object_names.h"
#include "quiet.h"
#include "segment_file.h"
#include "symbol.h"
#include "system.h"
#include "table.h"
#include "test_point.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

bool ct_clock_is_counter;

static struct {
    struct ct_segment *_Atomic segment; /* NULL: dormant */
    _Atomic uint32_t epoch;
    int32_t pid;
    uint8_t *own; /* 1 in the memory of process `pid`; wiped in that of a fork's child; NULL: cannot be had */
    _Atomic uint64_t next_look_ns; /* CLOCK_MONOTONIC_COARSE: no sooner look for a daemon again */
    uint64_t image_ns;
    /* Since when calls may be in no segment: the first look that found no daemon, or the end of the last
     * segment; 0: none are. */
    uint64_t absent_ns;
} process;

enum { LOOK_INTERVAL_NS = 1000000000 };

/* Signals wait: a handler's call that finds its own thread holding it could not be given a number, and would
 * be counted under none. */
static struct ct_lock lock = { .signals_wait = true };

bool ct_process_lock(void)
{
    return ct_lock_take(&lock);
}

void ct_process_unlock(void)
{
    ct_lock_give(&lock);
}

struct ct_segment *ct_process_current(void)
{
    return atomic_load_explicit(&process.segment, memory_order_acquire);
}

uint32_t ct_process_epoch(void)
{
    return atomic_load_explicit(&process.epoch, memory_order_acquire);
}

/* ---- forks and exits ---- */

/* Set by a thread that calls vfork() (trampoline_<cpu>.S), whose child goes on with its memory. */
__thread uint32_t ct_vforked;

bool ct_process_is_borrower(void)
{
    return process.own && *process.own && process.pid != (int32_t)syscall(SYS_getpid);
}

/* Without a system call but in a thread that has called vfork(), where the kernel can wipe memory in a fork's
 * child: then that of a parent or of a child that borrows it is told by what is left of it. */
enum ct_memory ct_process_memory(void)
{
    if (CT_LIKELY(process.own && *process.own && !ct_vforked))
        return CT_MEMORY_OWN;
    if (process.own && !*process.own)
        return CT_MEMORY_INHERITED;
    if (!ct_system_begin())
        return process.own ? CT_MEMORY_BORROWED : CT_MEMORY_OWN;
    const bool own = process.pid == (int32_t)syscall(SYS_getpid);
    ct_system_end();
    if (own)
        ct_vforked = 0; /* its child has gone: the parent waits for that */
    return own ? CT_MEMORY_OWN : process.own ? CT_MEMORY_BORROWED : CT_MEMORY_INHERITED;
}

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
    atomic_store(&process.segment, NULL);
    atomic_fetch_add(&process.epoch, 1);
    atomic_store(&process.next_look_ns, 0);
    ct_segment_forget();
    ct_daemon_forget();
    ct_named_forget();
    ct_descriptor_forget();
    ct_lock_forget(&lock);
    ct_table_lock_forget();
    ct_system_forget();
    ct_thread_number_forget();
    ct_vforked = 0;
    if (process.own)
        *process.own = 1;
    process.pid = 0;
    if (ct_system_begin()) {
        process.pid = (int32_t)syscall(SYS_getpid);
        ct_system_end();
    }
    process.absent_ns = 0;
    CT_TEST_POINT("process.child_dormant");
    ct_functions_forget_ids();
    ct_thread_forget();
    CT_TEST_POINT("process.child_ready");
}

typedef pid_t fork_function(void);
fork_function *ct_next_vfork; /* read by the trampoline */
fork_function *ct_find_vfork(void);

/* Any thread may come first; all would write the same. */
fork_function *ct_find_vfork(void)
{
    ct_next_vfork = (fork_function *)(uintptr_t)ct_symbol_of_library("vfork");
    return ct_next_vfork;
}

static void (*next_exit)(int status);
static fork_function *next_fork;

static void mark_exiting(void)
{
    struct ct_segment *segment = ct_process_current();
    /* In the child of vfork() the memory is the parent's. */
    if (!segment || ct_process_memory() != CT_MEMORY_OWN)
        return;
    CT_TEST_POINT("process.exiting");
    atomic_fetch_or(&segment->flags, CT_SEGMENT_EXITING);
    CT_TEST_POINT("process.marked");
}

static void make_own(void)
{
#ifdef MADV_WIPEONFORK
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, 4096, MADV_WIPEONFORK) != 0) {
        munmap(page, 4096);
        return;
    }
    process.own = page;
    *process.own = 1;
#endif
}

/* What pthread_atfork() and at_quick_exit() of glibc come to, and who has them: a program of another C
 * library (musl) loads the hook as well, which does nothing there. */
extern void *__dso_handle __attribute__((visibility("hidden")));
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *object)
    __attribute__((weak));
extern int __cxa_at_quick_exit(void (*function)(void *), void *object) __attribute__((weak));
extern const char *gnu_get_libc_version(void) __attribute__((weak));

static void mark_exiting_quickly(void *unused)
{
    (void)unused;
    mark_exiting();
}

/* Also called by hand when a call comes before the constructors. */
__attribute__((constructor)) static void begin(void)
{
    if (process.image_ns)
        return;
    process.image_ns = ct_monotonic_ns();
    process.pid = (int32_t)syscall(SYS_getpid);
    make_own();
    next_exit = (void (*)(int))(uintptr_t)ct_symbol_of_library("_exit");
    next_fork = (fork_function *)(uintptr_t)ct_symbol_of_library("_Fork");
    ct_find_vfork();
    if (__register_atfork)
        __register_atfork(NULL, NULL, start_anew, __dso_handle);
    if (__cxa_at_quick_exit) /* it ends in the C library's own _exit(), which is not ours */
        __cxa_at_quick_exit(mark_exiting_quickly, __dso_handle);
    if (!gnu_get_libc_version)
        ct_system_silence();
}

/* By _exit(), which is how the child of vfork() ends; where that has put a filter on, it is not asked for its
 * number. */
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
    const pid_t child = next_fork ? next_fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0)
        start_anew();
    return child;
}

/* ---- the segment ---- */

static struct ct_segment *look_at(uint64_t now)
{
    begin();
    if (ct_process_is_borrower())
        return NULL;
    if (process.pid != (int32_t)syscall(SYS_getpid))
        start_anew();
    if (!ct_process_lock())
        return NULL;
    struct ct_segment *segment = ct_process_current();
    if (segment || now < atomic_load_explicit(&process.next_look_ns, memory_order_relaxed)) {
        ct_process_unlock();
        return segment;
    }
    struct ct_place place;
    struct ct_wishes wishes;
    struct ct_control *control = ct_daemon_place(&place) ? ct_daemon_find(&place, &wishes) : NULL;
    CT_TEST_POINT("process.looked");
    if (control) {
        ct_clock_is_counter = wishes.clock_is_counter;
        segment = ct_segment_create(&(struct ct_segment_plan){
            .place = &place,
            .wishes = &wishes,
            .pid = process.pid,
            .image_ns = process.image_ns,
            .absent_ns = process.absent_ns,
        });
        atomic_fetch_add(&process.epoch, 1);
        if (!segment || !ct_daemon_take(control, &wishes)) {
            ct_daemon_drop(control);
            segment = NULL;
        }
    }
    if (segment) {
        process.absent_ns = 0;
        CT_TEST_POINT("process.created");
        ct_functions_forget_ids();
        ct_selection_begin(segment);
        CT_TEST_POINT("process.selected");
        atomic_store_explicit(&process.segment, segment, memory_order_release);
        CT_TEST_POINT("process.current");
        if (!wishes.system)
            atomic_fetch_add_explicit(&ct_control->segments, 1, memory_order_release);
        CT_TEST_POINT("process.counted");
        ct_daemon_ring();
    }
    if (!segment) {
        if (process.absent_ns == 0)
            process.absent_ns = ct_monotonic_ns();
        atomic_store_explicit(&process.next_look_ns, now + LOOK_INTERVAL_NS, memory_order_relaxed);
    }
    ct_process_unlock();
    return segment;
}

/* Once a second at most, one thread looks for the daemon; the others go on without. A dormant process's calls
 * come here: no system call before the second is over. */
static struct ct_segment *look(void)
{
    /* The session that would be found is the default one, which may be somebody else's. */
    if (!ct_library_ready() || !ct_system_allowed())
        return NULL;
    const uint64_t now = ct_coarse_ns();
    if (now < atomic_load_explicit(&process.next_look_ns, memory_order_relaxed) || !ct_system_begin())
        return NULL;
    struct ct_segment *segment = look_at(now);
    ct_system_end();
    return segment;
}

struct ct_segment *ct_process_segment(void)
{
    struct ct_segment *segment = ct_process_current();
    if (segment) {
        const enum ct_memory memory = ct_process_memory();
        if (memory == CT_MEMORY_OWN)
            return segment;
        if (memory == CT_MEMORY_BORROWED)
            return NULL;
        start_anew(); /* the child of a bare clone() */
    }
    return look();
}

void ct_process_detach(void)
{
    const struct quiet quiet = quiet_begin();
    CT_TEST_POINT("process.detaching");
    /* Under the lock, since otherwise a segment for the next daemon could be made between the two, and its
     * lanes be abandoned; or a lane be added to this one behind them. */
    if (ct_process_lock()) {
        if (ct_process_current() && ct_self->epoch == ct_process_epoch()) {
            atomic_store(&process.segment, NULL);
            process.absent_ns = ct_monotonic_ns(); /* others may still write to it, behind its last reader */
            if (ct_system_begin()) {
                ct_thread_lanes_abandon();
                ct_system_end();
            }
            atomic_fetch_add(&process.epoch, 1);
        }
        ct_thread_let_go();
        ct_process_unlock();
    } else {
        ct_thread_forget();
    }
    CT_TEST_POINT("process.detached");
    quiet_end(quiet);
}
