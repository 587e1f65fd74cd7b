/* The life of a traced process, apart from what it records: its segment found to be one, opened and closed;
 * the process itself followed; whether and how it has ended. */
#include "shm_process.h"

#include "exit_status.h"
#include "shm_lane.h"
#include "namespace.h"
#include "proc_file.h"
#include "real_user.h"
#include "test_point.h"
#include "text_numbers.h"
#include "time_namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* ---- opening ---- */

static const char *check_facts(const struct ct_segment *facts)
{
    if (facts->magic != CT_SEGMENT_MAGIC)
        return "not a segment";
    if (facts->version != CT_PROTO_VERSION || facts->header_bytes != sizeof(*facts))
        return "written by another version of the hook";
    if (!ct_ring_bytes_valid(facts->ring_bytes))
        return "its ring size is out of range";
    if (facts->clock >= CT_CLOCK_COUNT)
        return "its clock is unknown";
    if (!ct_segment_valid(facts))
        return "its geometry is not ours";
    if (facts->pid <= 0 || facts->process_start > INT64_MAX || facts->image_ns > INT64_MAX)
        return "it names no process";
    return NULL;
}

/* Whether process `pid` is the one that started then, and lives. Where that cannot be told it is: who asks
 * will ask again. */
static bool lives(int32_t pid, uint64_t start_ticks)
{
    struct ct_proc_stat stat;
    const int error = ct_proc_stat(pid, &stat);
    return error ? error != -ESRCH : !stat.ended && (start_ticks == 0 || stat.start_ticks == start_ticks);
}

bool ct_process_alive(const struct ct_running *running, const void *processes)
{
    for (const struct ct_process *process = processes; process; process = process->next) {
        struct pollfd ended = { .fd = process->pidfd, .events = POLLIN };
        if (process->process_id == running->process_id)
            return process->pidfd < 0 ? !atomic_load(&process->dead) : poll(&ended, 1, 0) == 0;
    }
    return lives(running->pid, running->start_ticks);
}

/* Whether a live process is, or was when it began, that user's; root may have become anybody since it made
 * its segment. 0, -EPERM when it is not, or -errno when that cannot be told. */
static int check_owner(uint32_t uid, int32_t pid)
{
    struct ct_proc_status status;
    const int error = ct_proc_status(pid, &status);
    if (error)
        return error == -ESRCH ? -EPERM : error;
    return uid == 0 || uid == status.real || uid == status.effective || uid == status.saved ? 0 : -EPERM;
}

/* Of one that was gone before /proc could be asked: its file's time of day, which is the same everywhere, against the time
 * that it says it made it at. No more than that, rounded where it can be, and only while it is young: the time of day
 * may be set. */
static bool guess_ahead(const struct ct_process *process, struct ct_time_ahead *ahead)
{
    const int64_t second_ns = 1000000000, young_ns = 10 * second_ns, near_ns = second_ns / 10;
    if ((int64_t)ct_monotonic_ns() - process->changed_ns > young_ns)
        return false;
    const int64_t ahead_ns = (int64_t)process->facts.anchor.monotonic_ns - process->changed_ns;
    const int64_t rounded_ns = (ahead_ns + (ahead_ns < 0 ? -1 : 1) * second_ns / 2) / second_ns * second_ns;
    const int64_t off_ns = ahead_ns - rounded_ns;
    *ahead = (struct ct_time_ahead){ .monotonic_ns = off_ns < near_ns && off_ns > -near_ns ? rounded_ns : ahead_ns };
    return rounded_ns > young_ns || rounded_ns < -young_ns;
}

/* Its times become ours. Field 22 of its /proc/PID/stat is cut to ticks on both sides: what we see counts. */
static void learn_ahead(struct ct_process *process)
{
    enum { TICK_NS = 10000000 };
    struct ct_time_ahead ahead;
    struct ct_proc_stat stat;
    struct ct_segment *facts = &process->facts;
    const bool is_told = process->seen_pid > 0 && ct_time_ahead_of(process->seen_pid, &ahead) == 0;
    if (!is_told && !guess_ahead(process, &ahead))
        return;
    process->is_ahead_known = true;
    if (ahead.monotonic_ns != 0) {
        facts->image_ns -= (uint64_t)ahead.monotonic_ns;
        facts->absent_ns -= facts->absent_ns ? (uint64_t)ahead.monotonic_ns : 0;
        facts->anchor.monotonic_ns -= (uint64_t)ahead.monotonic_ns;
        process->ahead_ticks = facts->clock == CT_CLOCK_MONOTONIC ? (uint64_t)ahead.monotonic_ns : 0;
    }
    if (ahead.boottime_ns != 0) {
        facts->process_start -= (uint64_t)(ahead.boottime_ns / TICK_NS);
        if (ct_proc_stat(process->seen_pid, &stat) == 0 && stat.start_ticks - facts->process_start + 1 <= 2)
            facts->process_start = stat.start_ticks;
    }
    /* One that lies about itself has no time at all. */
    if (facts->image_ns > INT64_MAX || facts->absent_ns > INT64_MAX || facts->process_start > INT64_MAX)
        facts->image_ns = facts->absent_ns = facts->process_start = 0;
}

/* Follows process `pid` by a descriptor, or by its entry in /proc where the kernel has no pidfd_open (before
 * Linux 5.3) or a filter of system calls forbids it. 0, or -errno for want of something that may be had
 * later. */
static int follow(struct ct_process *process, int32_t pid)
{
    process->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (process->pidfd < 0) {
        if (ct_proc_is_short(-errno))
            return -errno;
        if (errno != ESRCH)
            process->looked_up = pid;
    } else {
        fcntl(process->pidfd, F_SETFD, FD_CLOEXEC);
    }
    /* The pid may have been reused: the start time decides, read once a descriptor holds the process. */
    if ((process->pidfd < 0 && !process->looked_up) || !lives(pid, process->facts.process_start)) {
        atomic_store(&process->dead, true);
        if (process->pidfd >= 0)
            close(process->pidfd);
        process->pidfd = -1;
    }
    return 0;
}

/* Ends what should be text, and takes out what readers of the database refuse. */
static void clean(char *text, size_t bytes)
{
    char copy[sizeof(((struct ct_segment *)NULL)->cmdline)];
    text[bytes - 1] = '\0';
    memcpy(copy, text, bytes);
    ct_text_clean(text, copy, strlen(copy));
}

bool ct_process_is_at(const struct ct_process *process, const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && status.st_dev == process->device && status.st_ino == process->inode;
}

/* Every image has its own segments mapped until its end; they stand in /proc/PID/maps with the numbers of
 * device and inode. */
enum ct_process_hold ct_process_hold(const struct ct_process *process)
{
    char path[64], line[512];
    snprintf(path, sizeof(path), "/proc/%d/maps", process->seen_pid);
    FILE *maps = fopen(path, "re");
    if (!maps)
        return CT_HOLD_UNKNOWN;
    bool any = false, found = false, is_start = true;
    while (!found && fgets(line, sizeof(line), maps)) {
        unsigned long long inode;
        unsigned int major_number, minor_number;
        found = is_start &&
                sscanf(line, "%*s %*s %*s %x:%x %llu", &major_number, &minor_number, &inode) == 3 &&
                inode == process->inode && makedev(major_number, minor_number) == process->device;
        is_start = strchr(line, '\n') != NULL;
        any = true;
    }
    any &= !ferror(maps);
    fclose(maps);
    return found ? CT_HOLD_YES : any ? CT_HOLD_NO : CT_HOLD_UNKNOWN;
}

int ct_process_open(const char *path, struct ct_user *user, struct ct_process **result, const char **reason)
{
    struct ct_process *process = calloc(1, sizeof(*process));
    if (!process)
        return -ENOMEM;
    *reason = "out of memory";
    process->pidfd = -1;
    int error = -ENOMEM;
    process->user = user;
    /* Neither a FIFO nor a lease of its owner's holds it up. */
    process->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (process->fd < 0) {
        error = errno == EWOULDBLOCK ? -EBUSY : -errno;
        *reason = "it cannot be opened";
        goto fail;
    }
    struct stat status;
    if (ct_real_fstat(process->fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1 ||
        status.st_uid != (user ? user->uid : ct_real_euid())) {
        error = -EPERM;
        *reason = "it is not a file of the user in its name, or has a second name";
        goto fail;
    }
    process->device = status.st_dev;
    process->inode = status.st_ino;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t age_ns =
        (now.tv_sec - status.st_ctim.tv_sec) * INT64_C(1000000000) + now.tv_nsec - status.st_ctim.tv_nsec;
    process->changed_ns = (int64_t)ct_monotonic_ns() - age_ns;
    error = -EAGAIN; /* not yet allocated, or not yet filled in */
    if ((uint64_t)status.st_size < CT_LANE_OFFSET)
        goto fail;
    /* The header by read, since a sparse file's pages may not be there to be touched. */
    const ssize_t got = pread(process->fd, &process->facts, sizeof(process->facts), 0);
    if (got != (ssize_t)sizeof(process->facts) ||
        atomic_load_explicit(&process->facts.ready, memory_order_relaxed) != 1)
        goto fail;
    atomic_thread_fence(memory_order_acquire); /* pairs with the hook's release of `ready` */
    if (pread(process->fd, &process->facts, sizeof(process->facts), 0) != (ssize_t)sizeof(process->facts))
        goto fail;
    *reason = check_facts(&process->facts);
    error = -EPROTO;
    if (*reason)
        goto fail;
    process->facts.uid = status.st_uid; /* the kernel's word, not the segment's */
    clean(process->facts.exe, sizeof(process->facts.exe));
    clean(process->facts.cmdline, sizeof(process->facts.cmdline));

    error = -ENOMEM;
    void *map = mmap(NULL, CT_LANE_OFFSET, PROT_READ | PROT_WRITE, MAP_SHARED, process->fd, 0);
    if (map != MAP_FAILED) {
        process->shared = map;
        process->guard = ct_guard_add(map, CT_LANE_OFFSET);
    }
    if (map == MAP_FAILED || !process->guard)
        goto fail;
    snprintf(process->path, sizeof(process->path), "%s", path);
    /* A process that cannot be seen from here is in a namespace beside ours, or was gone before it was looked
     * for: has_let_go() tells. */
    const uint64_t namespace = process->facts.pid_namespace;
    const bool is_ours = namespace == 0 || namespace == ct_namespace_of("self");
    if (user && !is_ours)
        user->loop_has.has[CT_SHARED_LOOKS] += CT_USER_LOOKS_NAMESPACE;
    process->seen_pid = process->facts.pid;
    error = is_ours ? 0 : ct_namespace_find(namespace, process->facts.pid, &process->seen_pid);
    *reason = "/proc does not tell whose process it names";
    learn_ahead(process);
    if (!error && process->seen_pid > 0)
        error = follow(process, process->seen_pid);
    /* Asked once a descriptor holds the process. */
    if (!error && user && process->seen_pid > 0 && !process->dead) {
        error = check_owner(user->uid, process->seen_pid);
        if (error == -EPERM)
            *reason = "it names a process of another user";
    }
    if (error)
        goto fail;
    *result = process;
    return 0;

fail:
    ct_process_close(process, false);
    return error;
}

void ct_process_close(struct ct_process *process, bool remove)
{
    if (!process)
        return;
    for (uint32_t i = 0; i < process->lane_count; i++)
        ct_lane_source_destroy(process->lanes[i]);
    free(process->lanes);
    ct_segment_map_finish(&process->map, &process->facts);
    if (process->shared) {
        ct_guard_remove(process->guard);
        munmap(process->shared, CT_LANE_OFFSET);
    }
    /* What lies there by now may be another file. */
    if (remove && ct_process_is_at(process, process->path)) {
        CT_TEST_POINT("process.removing");
        unlink(process->path);
        CT_TEST_POINT("process.removed");
    }
    if (process->fd >= 0)
        close(process->fd);
    if (process->pidfd >= 0)
        close(process->pidfd);
    ct_tally_finish(&process->tally);
    ct_process_forget_functions(process);
    free(process);
}

/* ---- the end ---- */

/* Whether the program image has no memory any more: the process has ended, wherever it was, or goes on as
 * another program. */
static bool has_let_go(const struct ct_process *process)
{
    return ct_segment_hold(&process->facts, process->fd) == CT_SEGMENT_LET_GO;
}

/* Whether the process itself runs on. */
static bool runs(const struct ct_process *process)
{
    struct pollfd ended = { .fd = process->pidfd, .events = POLLIN };
    if (process->pidfd >= 0)
        return poll(&ended, 1, 0) == 0;
    return process->looked_up && lives(process->looked_up, process->facts.process_start);
}

/* What no descriptor tells. One that is known here and has no memory is about to end, and its descriptor
 * tells how; with other memory it is another program. */
bool ct_process_is_over(const struct ct_process *process)
{
    char path[64], exe[8];
    if (process->looked_up && !lives(process->looked_up, process->facts.process_start))
        return true;
    if (!has_let_go(process))
        return false;
    snprintf(path, sizeof(path), "/proc/%d/exe", process->seen_pid);
    return process->seen_pid == 0 || readlink(path, exe, sizeof(exe)) >= 0 || errno != ENOENT;
}

/* What the kernel says counts; else whether the exit handlers have run. An image that let go of a process
 * that runs on became another program, which may make no call. */
bool ct_process_has_exited(const struct ct_process *process)
{
    const uint32_t flags = atomic_load_explicit(&process->shared->flags, memory_order_acquire);
    const bool exited = flags & CT_SEGMENT_EXITING;
    if (runs(process))
        return exited || has_let_go(process);
    const enum ct_ending ending =
        ct_exit_status(process->pidfd, process->seen_pid, process->facts.process_start);
    return ending == CT_ENDING_UNKNOWN ? exited : ending == CT_ENDING_EXITED;
}
