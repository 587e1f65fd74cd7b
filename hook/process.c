/* The process's segment: created for a daemon that daemon.c found, given up, started anew in a fork's child.
 * Called by thread.c, functions.c and record.c, never on the hot path.
 *
 * No descriptor stays open between calls: a program that closes all of them (as daemons do) and gets the
 * number back for a file of its own must not have it written by us. The segment is opened again by name when
 * it has to grow, and is checked to be the same file. */
#include "descriptor.h"
#include "file_status.h"
#include "hook.h"
#include "lock.h"
#include "named.h"
#include "quiet.h"
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
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

bool ct_clock_is_counter;

static struct {
    struct ct_segment *_Atomic segment; /* NULL: dormant */
    _Atomic uint32_t epoch;
    int32_t pid;
    uint8_t *own; /* 1 in the memory of process `pid`; wiped in that of a fork's child; NULL: cannot be had */
    /* CLOCK_MONOTONIC_COARSE: no sooner look for a daemon, or ask for shared memory, again. */
    _Atomic uint64_t next_look_ns, next_allocation_ns;
    uint64_t image_ns;
    /* Since when calls may be in no segment: the first look that found no daemon, or the end of the last
     * segment; 0: none are. */
    uint64_t absent_ns;
    uint64_t inode, device;
    void *hold; /* the mapping that holds the lock on the segment */
    char path[CT_NAME_BYTES];
} process;

enum { LOOK_INTERVAL_NS = 1000000000, REFUSAL_INTERVAL_NS = 1000000000 };

static uint64_t coarse_ns(void)
{
    struct timespec coarse;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &coarse);
    return (uint64_t)coarse.tv_sec * 1000000000 + (uint64_t)coarse.tv_nsec;
}

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
    struct ct_segment *segment = ct_process_current();
    CT_TEST_POINT("process.child_begun");
    if (segment && ct_system_begin()) {
        ct_thread_redirect(segment);
        ct_system_end();
    }
    CT_TEST_POINT("process.child_redirected");
    atomic_store(&process.segment, NULL);
    atomic_fetch_add(&process.epoch, 1);
    atomic_store(&process.next_look_ns, 0);
    atomic_store(&process.next_allocation_ns, 0);
    ct_daemon_forget();
    ct_named_forget();
    ct_descriptor_forget();
    ct_lock_forget(&lock);
    ct_table_lock_forget();
    ct_system_forget();
    ct_thread_number_forget();
    ct_vforked = 0;
    process.hold = NULL; /* not mapped here */
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

/* What pthread_atfork() and at_quick_exit() of glibc come to, and who has them: a program of another C library
 * (musl) loads the hook as well, which does nothing there. */
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

bool ct_process_may_allocate(void)
{
    return ct_system_allowed() && coarse_ns() >= atomic_load_explicit(&process.next_allocation_ns, memory_order_relaxed);
}

/* Memory is not asked for again for a while; -error. */
static int refuse(int error)
{
    ct_system_refused(error);
    atomic_store_explicit(&process.next_allocation_ns, coarse_ns() + REFUSAL_INTERVAL_NS,
                          memory_order_relaxed);
    return -error;
}

/* Makes a range touchable; 0 or -errno. A limit on the size of files is asked about first: passing it raises
 * SIGXFSZ. */
static int allocate(int fd, uint64_t offset, uint64_t bytes)
{
    struct rlimit limit;
    int error = 0;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        offset + bytes > limit.rlim_cur)
        error = EFBIG;
    else
        do
            error = posix_fallocate(fd, (off_t)offset, (off_t)bytes);
        while (error == EINTR);
    return error ? refuse(error) : 0;
}

static void describe(struct ct_segment *segment, uint64_t ring_bytes, bool held)
{
    segment->magic = CT_SEGMENT_MAGIC;
    segment->version = CT_PROTO_VERSION;
    segment->header_bytes = sizeof(*segment);
    segment->function_slots = CT_FUNCTIONS_MAX;
    segment->lane_slots = CT_LANES_MAX;
    segment->lane_offset = CT_LANE_OFFSET;
    segment->lane_stride = CT_LANE_HEADER_BYTES + ring_bytes;
    segment->ring_bytes = ring_bytes;
    segment->pid = process.pid;
    segment->uid = (uint32_t)geteuid();
    segment->image_ns = process.image_ns;
    segment->clock = ct_clock_is_counter ? CT_CLOCK_COUNTER : CT_CLOCK_MONOTONIC;
    CT_TEST_POINT("process.half_described");
    segment->held = held;
    ct_program_describe(segment);
    segment->anchor = ct_anchor_read(3);
    segment->absent_ns = process.absent_ns;

    struct ct_function *unknown = (struct ct_function *)(void *)((uint8_t *)segment + CT_DIRECTORY_OFFSET);
    strncpy(unknown->name, "(directory full)", CT_FUNCTION_NAME_MAX);
    unknown->category = CT_CATEGORY_other;
    atomic_store_explicit(&segment->functions, 1, memory_order_relaxed);
    CT_TEST_POINT("process.described");
    /* Pairs with the collector's acquire: the header is complete. */
    atomic_store_explicit(&segment->ready, 1, memory_order_release);
}

/* A file without a name, which it gets once it is complete: whoever is killed over it leaves nothing behind,
 * and the collector sees no half of it. Where that cannot be had (Linux before 3.11, no /proc), `dir` is
 * NULL: it has its name from the start, and the collector takes away what stays incomplete
 * (collector/watch.c). */
static int create_file(const char *dir)
{
    if (!dir)
        return ct_descriptor_open(process.path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    return ct_descriptor_open(dir, O_RDWR | O_TMPFILE, 0600);
}

static bool give_name(int fd)
{
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, link, AT_FDCWD, process.path, AT_SYMLINK_FOLLOW) == 0;
}

/* Locks the segment for as long as this program image has its memory: the collector may be in a pid namespace
 * that ours is not seen from. An open file description keeps its lock while anything refers to it, and a
 * mapping does, without a descriptor; no child of fork() gets this one. `fd` is another description of the
 * same file. False, and no lock, where the kernel does not do all that. */
static bool hold_segment(int fd)
{
    const struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    struct flock seen = whole;
    if (process.hold)
        munmap(process.hold, CT_DIRECTORY_OFFSET); /* an earlier daemon's */
    process.hold = NULL;
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    int own = ct_descriptor_open(link, O_RDWR, 0); /* it may have no name yet */
    if (own < 0)
        own = ct_descriptor_open(process.path, O_RDWR | O_NOFOLLOW, 0);
    if (own < 0)
        return false;
    void *map = MAP_FAILED;
    if (fcntl(own, F_OFD_SETLK, &whole) == 0)
        map = mmap(NULL, CT_DIRECTORY_OFFSET, PROT_READ, MAP_SHARED, own, 0);
    close(own);
    if (map == MAP_FAILED)
        return false;
    if (madvise(map, CT_DIRECTORY_OFFSET, MADV_DONTFORK) == 0 && fcntl(fd, F_OFD_GETLK, &seen) == 0 &&
        seen.l_type != F_UNLCK) {
        process.hold = map;
        return true;
    }
    munmap(map, CT_DIRECTORY_OFFSET);
    return false;
}

/* NULL when memory is refused, or no file without a name is to be had. */
static struct ct_segment *make_segment(uint64_t ring_bytes, const char *dir)
{
    const int fd = create_file(dir);
    if (fd < 0)
        return NULL;
    CT_TEST_POINT("process.file_made");
    struct stat status;
    void *map = MAP_FAILED;
    /* The header and the directory's first page; first, since it knows about limits. A umask may have taken
     * the owner's own rights, and the daemon's with them. */
    if (ct_file_status(fd, &status) == 0 && ((status.st_mode & 0777) == 0600 || fchmod(fd, 0600) == 0) &&
        allocate(fd, CT_LANE_OFFSET - 4096, 4096) == 0 && allocate(fd, 0, CT_DIRECTORY_OFFSET + 4096) == 0) {
        CT_TEST_POINT("process.allocated");
        map = mmap(NULL, CT_LANE_OFFSET, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    bool made = map != MAP_FAILED;
    if (made) {
        CT_TEST_POINT("process.mapped");
        process.inode = status.st_ino;
        process.device = status.st_dev;
        describe(map, ring_bytes, hold_segment(fd));
        CT_TEST_POINT("process.ready");
        if (dir)
            made = give_name(fd);
        else /* an event, now that it is complete */
            utimensat(AT_FDCWD, process.path, NULL, AT_SYMLINK_NOFOLLOW);
        CT_TEST_POINT("process.named");
    }
    close(fd);
    if (made)
        return map;
    if (map != MAP_FAILED)
        munmap(map, CT_LANE_OFFSET);
    if (!dir)
        unlink(process.path);
    return NULL;
}

static struct ct_segment *create_segment(const struct ct_place *place, const struct ct_control *control)
{
    const uint64_t ring_bytes = control->ring_bytes;
    if (!ct_ring_bytes_valid(ring_bytes))
        return NULL;
    ct_session_segment_path(process.path, place->dir, place->uid, place->session, control->system,
                            process.pid, ct_monotonic_ns());
    struct ct_segment *segment = make_segment(ring_bytes, place->dir);
    if (!segment && ct_process_may_allocate())
        segment = make_segment(ring_bytes, NULL);
    return segment;
}

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
    struct ct_control *control = ct_daemon_place(&place) ? ct_daemon_find(&place) : NULL;
    CT_TEST_POINT("process.looked");
    if (control) {
        ct_clock_is_counter = control->clock == CT_CLOCK_COUNTER;
        segment = create_segment(&place, control);
        atomic_fetch_add(&process.epoch, 1);
        if (segment && !ct_thread_producers_create()) {
            unlink(process.path);
            munmap(segment, CT_LANE_OFFSET);
            segment = NULL;
        }
    }
    if (segment) {
        /* An earlier daemon's mapping may still be in a thread's hands: it stays. */
        ct_control = control;
        process.absent_ns = 0;
        CT_TEST_POINT("process.created");
        ct_functions_forget_ids();
        ct_selection_begin(segment);
        CT_TEST_POINT("process.selected");
        atomic_store_explicit(&process.segment, segment, memory_order_release);
        CT_TEST_POINT("process.current");
        if (!control->system)
            atomic_fetch_add_explicit(&control->segments, 1, memory_order_release);
        CT_TEST_POINT("process.counted");
        ct_daemon_ring();
    } else if (control) {
        munmap(control, sizeof(*control));
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
    const uint64_t now = coarse_ns();
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

/* The segment's file, for a moment; -errno when it is not there or not ours. A process that has become
 * another user's may not open it any more: it has what it had mapped, and asks again a second later. */
static int reopen(void)
{
    const int fd = ct_descriptor_open(process.path, O_RDWR | O_NOFOLLOW, 0);
    if (fd < 0)
        return refuse(errno);
    struct stat status;
    if (ct_file_status(fd, &status) == 0 && status.st_ino == process.inode && status.st_dev == process.device)
        return fd;
    close(fd);
    return refuse(ESTALE);
}

static int allocate_more(uint64_t offset, uint64_t bytes)
{
    if (!ct_system_begin())
        return -EPERM;
    const int fd = reopen();
    const int error = fd < 0 ? fd : allocate(fd, offset, bytes);
    if (fd >= 0)
        close(fd);
    ct_system_end();
    return error;
}

struct ct_lane *ct_process_map_lane(uint32_t index)
{
    const struct ct_segment *segment = ct_process_current();
    if (!segment)
        return NULL;
    const uint64_t offset = ct_segment_lane_offset(segment, index);
    if (!ct_system_begin())
        return NULL;
    const int fd = reopen();
    void *map = MAP_FAILED;
    CT_TEST_POINT("process.lane_opened");
    if (fd >= 0) {
        if (allocate(fd, offset, CT_LANE_HEADER_BYTES + CT_CHUNK_BYTES) == 0)
            map = mmap(NULL, segment->lane_stride, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
        close(fd);
    }
    ct_system_end();
    return map == MAP_FAILED ? NULL : map;
}

int ct_process_grow_ring(uint32_t index, uint64_t bytes)
{
    const struct ct_segment *segment = ct_process_current();
    if (!segment)
        return -ESTALE;
    return allocate_more(ct_segment_lane_offset(segment, index), CT_LANE_HEADER_BYTES + bytes);
}

static uint64_t entry_place(uint32_t id)
{
    return CT_DIRECTORY_OFFSET + (uint64_t)id * sizeof(struct ct_function);
}

/* Whether the directory may have another entry: on a page that it has already, or while memory may be asked
 * for. */
static bool has_room(struct ct_segment *segment)
{
    const uint32_t id = atomic_load_explicit(&segment->functions, memory_order_relaxed);
    return id < segment->function_slots && (entry_place(id) % 4096 != 0 || ct_process_may_allocate());
}

uint16_t ct_process_define(uint32_t row_index)
{
    struct ct_row *row = &ct_rows[row_index];
    struct ct_segment *segment = ct_process_current();
    if (!segment || !has_room(segment) || !ct_process_lock())
        return atomic_load_explicit(&row->id, memory_order_relaxed);
    if (row->id || segment != ct_process_current() || !has_room(segment)) {
        ct_process_unlock();
        return row->id;
    }
    const uint32_t id = atomic_load_explicit(&segment->functions, memory_order_relaxed);
    const uint64_t place = entry_place(id);
    if (place % 4096 != 0 || allocate_more(place, 4096) == 0) {
        CT_TEST_POINT("process.entry_allocated");
        struct ct_function *entry = (struct ct_function *)(void *)((uint8_t *)segment + place);
        strncpy(entry->name, ct_functions_name(row_index), CT_FUNCTION_NAME_MAX);
        entry->layer = row->layer;
        entry->category = row->category;
        CT_TEST_POINT("process.entry_written");
        /* Pairs with the collector's acquire, and with the acquire in ct_enter(): whoever names the function
         * in a record has seen its entry. */
        atomic_store_explicit(&segment->functions, id + 1, memory_order_release);
        CT_TEST_POINT("process.entry_published");
        atomic_store_explicit(&row->id, (uint16_t)id, memory_order_release);
        ct_selection_apply(row_index);
        CT_TEST_POINT("process.function_applied");
    }
    ct_process_unlock();
    return row->id;
}

void ct_process_detach(void)
{
    const struct quiet quiet = quiet_begin();
    struct ct_segment *segment = ct_self->segment;
    CT_TEST_POINT("process.detaching");
    ct_thread_forget();
    /* Under the lock, since otherwise a segment for the next daemon could be made between the two, and its
     * lanes be abandoned; or a lane be added to this one behind them. */
    if (segment && ct_process_lock()) {
        if (atomic_compare_exchange_strong(&process.segment, &segment, NULL)) {
            process.absent_ns = ct_monotonic_ns(); /* others may still write to it, behind its last reader */
            if (ct_system_begin()) {
                ct_thread_producers_abandon();
                ct_system_end();
            }
        }
        ct_process_unlock();
    }
    CT_TEST_POINT("process.detached");
    quiet_end(quiet);
}
