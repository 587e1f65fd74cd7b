#include "shm_segment.h"

#include "interner.h"
#include "namespace.h"
#include "proc_file.h"
#include "real_user.h"
#include "shm_functions.h"
#include "shm_lane.h"
#include "test_point.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- opening ---- */

static const char *check_facts(const struct ct_segment *facts)
{
    if (facts->magic != CT_SEGMENT_MAGIC)
        return "it is not a segment";
    if (facts->version != CT_PROTO_VERSION || facts->header_bytes != sizeof(*facts))
        return "it was written by another version of the hook: restart its program with the hook of this "
               "build";
    if (!ct_ring_bytes_valid(facts->ring_bytes))
        return "its ring size is out of range";
    if (facts->clock >= CT_CLOCK_COUNT)
        return "its clock is unknown";
    if (facts->maker >= CT_MAKER_COUNT)
        return "its maker is unknown";
    if (!ct_segment_valid(facts))
        return "its sizes and offsets are inconsistent";
    if (facts->pid <= 0 || facts->process_start > INT64_MAX || facts->exec_ns > INT64_MAX)
        return "its process ID or start time is invalid";
    return NULL;
}

/* Estimates how far a process's clock is ahead if the process exited before /proc could be read. Compares the
 * file's creation time, which is the same in all namespaces, with the creation time that the process claims.
 * Rounds the difference to whole seconds if it is close to that. Returns false if the file is more than ten
 * seconds old, because the time of day may have been set since then. */
static bool guess_ahead(const struct ct_shm_process *process, struct ct_time_ahead *ahead)
{
    const int64_t second_ns = 1000000000, young_ns = 10 * second_ns, near_ns = second_ns / 10;
    if (process->made_ns == 0 || (int64_t)ct_monotonic_ns() - process->made_ns > young_ns)
        return false;
    const int64_t ahead_ns = (int64_t)process->facts.anchor.monotonic_ns - process->made_ns;
    const int64_t rounded_ns = (ahead_ns + (ahead_ns < 0 ? -1 : 1) * second_ns / 2) / second_ns * second_ns;
    const int64_t off_ns = ahead_ns - rounded_ns;
    *ahead = (struct ct_time_ahead){ .monotonic_ns =
                                         off_ns < near_ns && off_ns > -near_ns ? rounded_ns : ahead_ns };
    return rounded_ns > young_ns || rounded_ns < -young_ns;
}

/* Converts a time of day to CLOCK_MONOTONIC. */
static int64_t since_ns(int64_t seconds, int64_t nanoseconds)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t age_ns = (now.tv_sec - seconds) * INT64_C(1000000000) + now.tv_nsec - nanoseconds;
    return (int64_t)ct_monotonic_ns() - age_ns;
}

enum { TICK_NS = 10000000 };

/* Reads how far the process's clocks are ahead, and its start time. Returns false if the process has exited.
 * The start time shows whether the pid already belongs to another process, and is read last for this
 * reason. */
static bool read_ahead(const struct ct_shm_process *process, struct ct_time_ahead *ahead,
                       uint64_t *start_ticks)
{
    struct ct_proc_stat stat;
    const int32_t pid = process->who.seen_pid;
    if (pid <= 0 || ct_time_ahead_of(pid, ahead) != 0 || ct_proc_stat(pid, &stat) != 0)
        return false;
    const uint64_t told = process->facts.process_start;
    const uint64_t off = stat.start_ticks - (told - (uint64_t)(ahead->boottime_ns / TICK_NS));
    *start_ticks = stat.start_ticks;
    return told == 0 || off == 0 || (ahead->boottime_ns != 0 && off + 1 <= 2);
}

/* Converts a process's times to the daemon's clocks. Field 22 of /proc/PID/stat is truncated to ticks in both
 * namespaces, so it is not converted, but replaced by the value that the daemon reads. A probe's times use
 * the probe's own clocks, and stay unchanged. */
static void learn_ahead(struct ct_shm_process *process)
{
    struct ct_time_ahead ahead;
    uint64_t start_ticks;
    struct ct_segment *facts = &process->facts;
    if (ct_shm_is_probed(process))
        return;
    CT_TEST_POINT("segment.examining");
    if (!read_ahead(process, &ahead, &start_ticks) && !guess_ahead(process, &ahead))
        return;
    process->is_ahead_known = true;
    if (ahead.monotonic_ns != 0) {
        facts->exec_ns -= (uint64_t)ahead.monotonic_ns;
        facts->absent_ns -= facts->absent_ns ? (uint64_t)ahead.monotonic_ns : 0;
        facts->anchor.monotonic_ns -= (uint64_t)ahead.monotonic_ns;
        process->ahead_ticks = facts->clock == CT_CLOCK_MONOTONIC ? (uint64_t)ahead.monotonic_ns : 0;
    }
    if (ahead.boottime_ns != 0 && facts->process_start != 0)
        facts->process_start = start_ticks;
    /* Discard all times if they are implausible. */
    if (facts->exec_ns > INT64_MAX || facts->absent_ns > INT64_MAX || facts->process_start > INT64_MAX)
        facts->exec_ns = facts->absent_ns = facts->process_start = 0;
}

/* Terminates a string, and replaces bytes that database readers reject. */
static void clean(char *text, size_t bytes)
{
    char copy[sizeof(((struct ct_segment *)NULL)->cmdline)];
    text[bytes - 1] = '\0';
    memcpy(copy, text, bytes);
    ct_text_clean(text, copy, strlen(copy));
}

bool ct_shm_is_at(const struct ct_shm_process *process, const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && status.st_dev == process->who.device &&
           status.st_ino == process->who.inode;
}

/* A segment file that is being opened. Functions that take this struct and return int return 0, or -errno
 * with the reason set. */
struct opening {
    struct ct_shm_process *process; /* owns everything that a step acquires */
    struct ct_user *user;           /* NULL: the daemon's own */
    struct stat status;
    const char *reason;
};

static const char not_shown[] = "/proc does not show the owner of the process that it names";

static int fail(struct opening *opening, int error, const char *reason)
{
    opening->reason = reason;
    return error;
}

static int open_file(struct opening *opening, const char *path)
{
    struct ct_shm_process *process = opening->process;
    snprintf(process->path, sizeof(process->path), "%s", path);
    /* Do not block on a FIFO, or on a lease held by the file's owner. */
    process->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (process->fd < 0)
        return fail(opening, errno == EWOULDBLOCK ? -EBUSY : -errno, "it cannot be opened");
    return 0;
}

static int identify_file(struct opening *opening)
{
    struct ct_shm_process *process = opening->process;
    struct stat *status = &opening->status;
    if (ct_real_fstat(process->fd, status) != 0 || !S_ISREG(status->st_mode) || status->st_nlink != 1)
        return fail(opening, -EPERM, "it is not a regular file, or has a second name (a hard link)");
    /* The caller has checked the owner of another file, which this one has replaced. */
    if (status->st_uid != (opening->user ? opening->user->uid : ct_real_euid()))
        return fail(opening, -EBUSY, "it belongs to another user");
    process->who.device = status->st_dev;
    process->who.inode = status->st_ino;
    struct statx birth;
    process->changed_ns = since_ns(status->st_ctim.tv_sec, status->st_ctim.tv_nsec);
    if (statx(process->fd, "", AT_EMPTY_PATH, STATX_BTIME, &birth) == 0 && birth.stx_mask & STATX_BTIME)
        process->made_ns = since_ns(birth.stx_btime.tv_sec, birth.stx_btime.tv_nsec);
    return 0;
}

/* Reads the header with pread() instead of mapping it, because the pages of a sparse file may be impossible
 * to allocate. */
static bool read_header(int fd, struct ct_segment *facts)
{
    return pread(fd, facts, sizeof(*facts), 0) == (ssize_t)sizeof(*facts);
}

static int read_facts(struct opening *opening)
{
    const int fd = opening->process->fd;
    struct ct_segment *facts = &opening->process->facts;
    bool is_complete = (uint64_t)opening->status.st_size >= CT_SEGMENT_BYTES_MIN && read_header(fd, facts) &&
                       atomic_load_explicit(&facts->ready, memory_order_relaxed) == 1;
    if (is_complete) {
        atomic_thread_fence(memory_order_acquire); /* Pairs with the hook's release of `ready`. */
        is_complete = read_header(fd, facts);
    }
    if (!is_complete)
        return fail(opening, -EAGAIN, "it is not allocated yet, or not filled in yet");
    const char *reason = check_facts(facts);
    return reason ? fail(opening, -EPROTO, reason) : 0;
}

/* Replaces the user in the segment with the user reported by the kernel. Only a probe run by the daemon's own
 * user may write a segment for another user's process. */
static void correct_facts(struct opening *opening)
{
    struct ct_segment *facts = &opening->process->facts;
    if (opening->user || facts->maker != CT_MAKER_PROBE)
        facts->uid = opening->status.st_uid;
    clean(facts->exe, sizeof(facts->exe));
    clean(facts->cmdline, sizeof(facts->cmdline));
}

static int map_header(struct opening *opening)
{
    struct ct_shm_process *process = opening->process;
    void *map = mmap(NULL, CT_LANE_OFFSET, PROT_READ | PROT_WRITE, MAP_SHARED, process->fd, 0);
    if (map != MAP_FAILED) {
        process->shared = map;
        process->guard = ct_guard_add(map, CT_LANE_OFFSET);
    }
    return process->guard ? 0 : fail(opening, -ENOMEM, "out of memory");
}

/* Finds the process that the segment names. If the process is not visible, it is in a namespace outside the
 * daemon's, or exited before the lookup. ct_segment_hold() later distinguishes these two cases. */
static int find_process(struct opening *opening)
{
    struct ct_shm_process *process = opening->process;
    const uint64_t namespace = process->facts.pid_namespace;
    process->who.seen_pid = process->facts.pid;
    if (namespace == 0 || namespace == ct_namespace_of(0))
        return 0;
    if (opening->user)
        opening->user->loop_has.has[CT_SHARED_LOOKS] += CT_USER_LOOKS_NAMESPACE;
    const int error = ct_namespace_find(namespace, process->facts.pid, &process->who.seen_pid);
    return error ? fail(opening, error, not_shown) : 0;
}

static void identify_process(struct opening *opening)
{
    struct ct_shm_process *process = opening->process;
    learn_ahead(process);
    process->who.pid = process->facts.pid;
    process->who.uid = process->facts.uid;
    process->who.start_ticks = process->facts.process_start;
    process->who.exec_ns = process->facts.exec_ns;
    process->account.budget = opening->user ? &opening->user->budget : NULL;
}

static int follow_process(struct opening *opening)
{
    struct ct_process *who = &opening->process->who;
    if (who->seen_pid <= 0)
        return 0;
    int error = ct_process_follow(who);
    if (error)
        return fail(opening, error, not_shown);
    /* Check the owner only after a pidfd refers to the process. */
    if (opening->user && !who->dead)
        error = ct_process_check_owner(who);
    if (error)
        return fail(opening, error, error == -EPERM ? "it names a process of another user" : not_shown);
    return 0;
}

static int open_segment(struct opening *opening, const char *path)
{
    int error = open_file(opening, path);
    if (!error)
        error = identify_file(opening);
    if (!error)
        error = read_facts(opening);
    if (error)
        return error;
    correct_facts(opening);
    error = map_header(opening);
    if (!error)
        error = find_process(opening);
    if (error)
        return error;
    identify_process(opening);
    return follow_process(opening);
}

int ct_shm_open(const char *path, struct ct_user *user, struct ct_shm_process **result, const char **reason)
{
    struct opening opening = { .process = calloc(1, sizeof(struct ct_shm_process)), .user = user };
    if (!opening.process)
        return -ENOMEM;
    opening.process->fd = opening.process->who.pidfd = -1;
    opening.process->who.user = user;
    const int error = open_segment(&opening, path);
    if (error) {
        *reason = opening.reason;
        ct_shm_close(opening.process, false);
        return error;
    }
    *result = opening.process;
    return 0;
}

void ct_shm_close(struct ct_shm_process *process, bool remove)
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
    /* The path may refer to a different file by now. */
    if (remove && ct_shm_is_at(process, process->path)) {
        CT_TEST_POINT("process.removing");
        unlink(process->path);
        CT_TEST_POINT("process.removed");
    }
    if (process->fd >= 0)
        close(process->fd);
    ct_process_let_go(&process->who);
    ct_account_finish(&process->account);
    ct_shm_forget_functions(process);
    free(process);
}

/* ---- end ---- */

/* Returns whether the memory of the program image that wrote the segment has been freed, because the process
 * has exited or runs another program. Also works for processes in other namespaces. */
static bool has_let_go(const struct ct_shm_process *process)
{
    return ct_segment_hold(&process->facts, process->fd) == CT_SEGMENT_LET_GO;
}

/* Detects that the segment's writer has ended, even if no pidfd reports it. A probe's segment ends when the
 * probe's lock is released or, if the segment was never locked, when the process exits. A visible process
 * without any memory is about to exit, and its pidfd will report that. If the program image's memory has been
 * freed but the process still has memory, the process runs another program. */
bool ct_shm_is_over(const struct ct_shm_process *process)
{
    char path[64], exe[8];
    const enum ct_segment_hold hold = ct_segment_hold(&process->facts, process->fd);
    if (ct_shm_is_probed(process))
        return hold == CT_SEGMENT_LET_GO ||
               (hold == CT_SEGMENT_HOLD_UNKNOWN && !ct_process_runs(&process->who));
    if (process->who.looked_up && !ct_process_lives(process->who.looked_up, process->who.start_ticks))
        return true;
    if (hold != CT_SEGMENT_LET_GO)
        return false;
    snprintf(path, sizeof(path), "/proc/%d/exe", process->who.seen_pid);
    return process->who.seen_pid == 0 || readlink(path, exe, sizeof(exe)) >= 0 || errno != ENOENT;
}

bool ct_shm_is_left(const struct ct_shm_process *process)
{
    return atomic_load_explicit(&process->shared->flags, memory_order_acquire) & CT_SEGMENT_LEFT;
}

/* Queries the kernel first. If the kernel has no exit status, checks whether the exit handlers have run. If
 * the process still exists but no longer has the image mapped, it has executed another program, which may
 * never make a call. */
bool ct_shm_has_exited(const struct ct_shm_process *process)
{
    const uint32_t flags = atomic_load_explicit(&process->shared->flags, memory_order_acquire);
    const bool exited = flags & CT_SEGMENT_EXITING;
    if (ct_process_runs(&process->who))
        return exited || has_let_go(process);
    const enum ct_ending ending =
        ct_exit_status(process->who.pidfd, process->who.seen_pid, process->who.start_ticks);
    return ending == CT_ENDING_UNKNOWN ? exited : ending == CT_ENDING_EXITED;
}
