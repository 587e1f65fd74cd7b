#include "probed.h"

#include "clock.h"
#include "interrupted.h"
#include "proc.h"
#include "program.h"
#include "session_lock.h"
#include "writer_link.h"
#include "writer_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WRITERS_MAX = 16, MESSAGES_MAX = 16 };
#define READY_NS   UINT64_C(2000000000)
#define FINISH_NS  UINT64_C(10000000000) /* for all writers together, after the last call */
#define STOPPED_NS UINT64_C(2000000000)  /* for all stopped writers together */

struct ct_probed *ct_probed_find(const struct ct_probed_set *set, pid_t pid)
{
    struct ct_probed *probed = set->first;
    while (probed && (probed->pid != pid || probed->has_executed))
        probed = probed->next;
    return probed;
}

bool ct_probed_is_empty(const struct ct_probed_set *set)
{
    const struct ct_probed *probed = set->first;
    while (probed && probed->is_arrivals)
        probed = probed->next;
    return !probed;
}

/* ---- the lock of a segment ---- */

static void close_lock(int *lock)
{
    if (*lock >= 0)
        close(*lock);
    *lock = -1;
}

static void take_lock(struct ct_probed *probed, int lock)
{
    if (probed->known_lock < 0) {
        probed->known_lock = lock;
        return;
    }
    close_lock(&probed->new_lock);
    probed->new_lock = lock;
}

/* Called when the daemon knows the latest segment. The lock of the segment before it is then no longer
 * needed. */
static void pass_lock(struct ct_probed *probed)
{
    if (probed->new_lock < 0)
        return;
    close_lock(&probed->known_lock);
    probed->known_lock = probed->new_lock;
    probed->new_lock = -1;
}

/* Takes a few of the writer's messages. Returns whether CT_LINK_READY was among them. */
static bool read_link(struct ct_probed *probed)
{
    bool is_ready = false;
    int lock;
    enum ct_link_message message;
    for (int i = 0; i < MESSAGES_MAX && (message = ct_link_take(probed->link, &lock)) != CT_LINK_NOTHING;
         i++) {
        is_ready |= message == CT_LINK_READY;
        probed->has_hook |= message == CT_LINK_HOOK;
        if (message == CT_LINK_KNOWN)
            pass_lock(probed);
        if (lock >= 0)
            take_lock(probed, lock);
    }
    return is_ready;
}

/* ---- the start of a writer ---- */

/* Waits until the writer has created a segment, has found that there is no daemon, or has ended, or until
 * Ctrl-C. */
static void wait_until_ready(struct ct_probed *probed)
{
    enum { LOOK_MS = 50 };
    const uint64_t until_ns = ct_monotonic_ns() + READY_NS;
    struct pollfd link = { .fd = probed->link, .events = POLLIN };
    while (!read_link(probed) && !(link.revents & POLLHUP) && !ct_is_interrupted() &&
           ct_monotonic_ns() < until_ns)
        poll(&link, 1, LOOK_MS);
}

/* Writes the command line that the notice contains, or else the name of the thread. */
static void describe_found(char *cmdline, size_t room, const struct ct_probe_notice *found)
{
    size_t bytes =
        found->arguments_bytes < sizeof(found->arguments) ? found->arguments_bytes : sizeof(found->arguments);
    while (bytes > 0 && found->arguments[bytes - 1] == '\0')
        bytes--;
    for (size_t i = 0; i < bytes; i++)
        cmdline[i] = found->arguments[i] ? found->arguments[i] : ' ';
    cmdline[bytes] = '\0';
    if (bytes == 0)
        snprintf(cmdline, room, "[%s]", found->name);
}

/* Describes the process for its first writer and for any later ones, since the process may have ended by the
 * time that a later writer starts. If the BPF programs have found the process, the writer completes the
 * description. */
static int describe(struct ct_probed *probed, const struct ct_probe_notice *found, bool is_visited)
{
    struct ct_proc_status status;
    const int error = ct_proc_status(probed->pid, &status);
    if (error && !found)
        return error;
    const uint64_t start_ticks = probed->program.start_ticks;
    probed->uid = error ? found->uid : status.effective;
    probed->gid = error ? found->gid : status.group;
    if (!found || is_visited)
        ct_program_describe(&probed->program, ct_proc_thread(probed->pid), false);
    probed->program.start_ticks = start_ticks;
    if (!probed->program.cmdline[0] && found)
        describe_found(probed->program.cmdline, sizeof(probed->program.cmdline), found);
    return 0;
}

static bool has_ended(const struct ct_probed *probed)
{
    struct ct_proc_stat stat;
    if (probed->has_executed)
        return true;
    const int error = ct_proc_stat(probed->pid, &stat);
    return error ? error == -ESRCH : stat.ended || stat.start_ticks != probed->program.start_ticks;
}

/* Returns a pidfd, or -1 if the process has ended. After opening the pidfd, checks that it belongs to the
 * process, because the pid may have been reused. */
static int open_process(const struct ct_probed *probed)
{
    const int pidfd = (int)syscall(SYS_pidfd_open, probed->pid, 0);
    if (pidfd < 0 || !has_ended(probed))
        return pidfd;
    close(pidfd);
    return -1;
}

static int start_writer(struct ct_probed_set *set, struct ct_probed *probed, uint64_t since_ns,
                        uint64_t absent_ns, bool is_found)
{
    const struct ct_probe_cost cost = ct_programs_cost(set->programs);
    struct ct_writer_plan plan = {
        .pid = probed->pid,
        .maker = probed->is_arrivals    ? CT_MAKER_MACHINE
                 : probed->is_companion ? CT_MAKER_COMPANION
                                        : CT_MAKER_PROBE,
        .uid = probed->uid,
        .gid = probed->gid,
        .program = &probed->program,
        .exec_ns = probed->exec_ns,
        .since_ns = since_ns,
        .absent_ns = absent_ns,
        .flags = probed->has_executed ? CT_SEGMENT_EXITING : 0,
        .arriving = probed->channel.ring >= 0 ? &set->functions->arriving[probed->channel.number] : NULL,
        .in_flight = probed->channel.ring >= 0 ? &set->functions->in_flight[probed->channel.number] : NULL,
        .copied = probed->channel.ring >= 0 ? &set->functions->copied[probed->channel.number] : NULL,
        .end = probed->channel.ring >= 0 ? ct_channel_end(set->programs, &probed->channel) : NULL,
        .hook = &probed->hook,
        .pidfd = open_process(probed),
        .ring = probed->channel.ring,
        .threads = probed->channel.threads,
        .lost = probed->channel.lost,
        .notices = probed->is_arrivals ? ct_programs_notices(set->programs) : -1,
        .functions = set->functions,
        .entry_ns = cost.seen_ns / 2,
        .return_ns = cost.seen_ns - cost.seen_ns / 2,
    };
    if (plan.in_flight && probed->writers == 0) { /* the values are of the channel's last process */
        *plan.in_flight = 0;
        set->functions->copied[probed->channel.number] = 0;
    }
    const int error = ct_writer_process_start(&plan, is_found, &probed->writer, &probed->link);
    if (plan.pidfd >= 0)
        close(plan.pidfd);
    probed->writers++;
    return error;
}

/* If the BPF programs have found the process, does not wait until its writer is ready, because more notices
 * may be pending. */
static int start_first_writer(struct ct_probed_set *set, struct ct_probed *probed,
                              const struct ct_probe_notice *found, bool is_visited)
{
    int error = describe(probed, found, is_visited);
    if (!error)
        error = start_writer(set, probed, found ? found->ns : ct_monotonic_ns(), found ? found->missed_ns : 0,
                             found && !is_visited);
    if (!error && !found)
        wait_until_ready(probed);
    return error;
}

/* ---- the set ---- */

/* The start time is taken from the notice, if there is one, because the process may already have ended. */
static struct ct_probed *insert(struct ct_probed_set *set, pid_t pid, const struct ct_probe_notice *found)
{
    const uint64_t tick_ns = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
    struct ct_proc_stat stat = { .start_ticks = found ? found->started_ns / tick_ns : 0 };
    struct ct_probed *probed = found || ct_proc_stat(pid, &stat) == 0 ? calloc(1, sizeof(*probed)) : NULL;
    if (!probed)
        return NULL;
    probed->pid = pid;
    probed->program.start_ticks = stat.start_ticks;
    probed->link = probed->known_lock = probed->new_lock = -1;
    probed->hook = CT_HOOK_SEGMENT_NONE;
    probed->channel = (struct ct_channel){ .ring = -1, .threads = -1, .lost = -1 };
    probed->next = set->first;
    set->first = probed;
    return probed;
}

static void unlink_probed(struct ct_probed_set *set, const struct ct_probed *probed)
{
    struct ct_probed **link = &set->first;
    while (*link != probed)
        link = &(*link)->next;
    *link = probed->next;
}

/* Removes a skipped process after the hook's visit to it has ended. Returns the hook's segment, which then
 * belongs to the caller. */
static struct ct_hook_segment take_skipped(struct ct_probed_set *set, pid_t pid)
{
    struct ct_probed *probed = ct_probed_find(set, pid);
    if (!probed || !probed->is_skipped || probed->channel.ring >= 0)
        return CT_HOOK_SEGMENT_NONE;
    const struct ct_hook_segment hook = probed->hook;
    unlink_probed(set, probed);
    free(probed);
    return hook;
}

static void forget(struct ct_probed_set *set, struct ct_probed *probed)
{
    unlink_probed(set, probed);
    if (probed->link >= 0)
        close(probed->link);
    close_lock(&probed->known_lock);
    close_lock(&probed->new_lock);
    ct_hook_segment_close(&probed->hook);
    if (probed->is_companion)
        ct_companion_take_back(set->programs, probed->pid, &probed->channel);
    if (!probed->has_executed)
        ct_channel_take_back(set->programs, probed->pid, &probed->channel);
    if (probed->channel.ring >= 0)
        __atomic_store_n(&set->functions->arriving[probed->channel.number], 0, __ATOMIC_RELEASE);
    if (probed->channel.ring >= 0)
        ct_channel_free(set->programs, &probed->channel);
    free(probed);
}

int ct_probed_add(struct ct_probed_set *set, pid_t pid, struct ct_channel *channel, uint64_t exec_ns,
                  const struct ct_probe_notice *found)
{
    const bool is_visited = ct_probed_find(set, pid) != NULL;
    struct ct_hook_segment hook = take_skipped(set, pid);
    struct ct_probed *probed = insert(set, pid, found);
    if (!probed) {
        ct_channel_free(set->programs, channel);
        ct_hook_segment_close(&hook);
        return -ESRCH;
    }
    probed->hook = hook;
    const uint64_t executed_ns = found ? found->executed_ns : ct_programs_executed_ns(set->programs, pid);
    probed->exec_ns = exec_ns       ? exec_ns
                      : executed_ns ? executed_ns
                                    : ct_program_start_ns(probed->program.start_ticks);
    probed->channel = *channel;
    /* The process's libraries may already have probes, so the first call may be recorded at any time. If the
     * BPF programs have found the process, the value was already set before the notice was consumed. */
    __atomic_store_n(&set->functions->arriving[channel->number], 1, __ATOMIC_RELEASE);
    int error = found ? 0 : ct_channel_give(set->programs, pid, channel);
    if (error) {
        forget(set, probed);
        return error;
    }
    error = start_first_writer(set, probed, found, is_visited);
    /* The process's threads already use the channel, so it cannot be given to another process before this
     * process has ended. */
    if (error) {
        ct_channel_give(set->programs, pid, NULL);
        __atomic_store_n(&set->functions->arriving[channel->number], 0, __ATOMIC_RELEASE);
    }
    return error;
}

int ct_probed_begin(struct ct_probed_set *set, const struct ct_channel *machine)
{
    struct ct_probed *probed = insert(set, getpid(), NULL);
    if (!probed)
        return -ENOMEM;
    probed->is_arrivals = true;
    if (machine)
        probed->channel = *machine;
    probed->exec_ns = ct_program_start_ns(probed->program.start_ticks);
    return start_first_writer(set, probed, NULL, false);
}

int ct_probed_skip(struct ct_probed_set *set, pid_t pid, const struct ct_channel *channel)
{
    struct ct_probed *probed = insert(set, pid, NULL);
    if (!probed && channel) {
        struct ct_channel unused = *channel;
        ct_channel_free(set->programs, &unused);
    }
    if (!probed)
        return -ESRCH;
    probed->is_skipped = true;
    if (channel)
        probed->channel = *channel;
    return ct_channel_give(set->programs, pid, NULL);
}

int ct_probed_accompany(struct ct_probed_set *set, const struct ct_companion *companion,
                        struct ct_channel *channel)
{
    struct ct_hook_segment left = take_skipped(set, companion->pid);
    ct_hook_segment_close(&left);
    struct ct_probed *probed = insert(set, companion->pid, NULL);
    if (!probed) {
        ct_channel_free(set->programs, channel);
        return -ESRCH;
    }
    probed->is_companion = true;
    probed->exec_ns = companion->exec_ns;
    probed->channel = *channel;
    ct_channel_give(set->programs, companion->pid, NULL);
    int error = describe(probed, NULL, false);
    probed->uid = companion->uid;
    const uint64_t now_ns = ct_monotonic_ns();
    __atomic_store_n(&set->functions->arriving[channel->number], 1, __ATOMIC_RELEASE);
    if (!error)
        error = ct_companion_give(set->programs, companion->pid, channel, companion->producer);
    if (error) {
        forget(set, probed);
        return error;
    }
    error = start_writer(set, probed, now_ns, 0, false);
    /* The process's threads may already use the channel, so it cannot be given to another process before this
     * process has ended. */
    if (error)
        ct_companion_take_back(set->programs, companion->pid, channel);
    else
        wait_until_ready(probed);
    return error;
}

void ct_probed_set_hook(struct ct_probed *probed, const struct ct_mapped_drivers *images)
{
    if (*images->segment)
        ct_hook_segment_open(&probed->hook, images->segment);
}

/* Makes the trace say that calls of the process are missing. Returns false if it does already. */
static bool note_unprobed_code(struct ct_probed_set *set, const struct ct_probed *probed)
{
    uint8_t *copied = &set->functions->copied[probed->channel.number];
    if (probed->channel.ring < 0 || *copied)
        return false;
    __atomic_store_n(copied, 1, __ATOMIC_RELAXED);
    return true;
}

void ct_probed_set_left_out(struct ct_probed_set *set, struct ct_probed *probed,
                            const struct ct_mapped_drivers *images)
{
    if (images->left_out > 0 && note_unprobed_code(set, probed))
        fprintf(
            stderr,
            "cudatrace-probe: process %d: calls to %zu of its libraries are missing, such as %s: the probe "
            "follows %d libraries of a process; use `cudatrace attach`\n",
            probed->pid, images->left_out, images->left_name, CT_MAPPED_DRIVERS_MAX);
}

void ct_probed_set_copied(struct ct_probed_set *set, struct ct_probed *probed,
                          const struct ct_mapped_driver *image)
{
    if (!note_unprobed_code(set, probed))
        return;
    fprintf(
        stderr,
        "cudatrace-probe: process %d: code of %s is in other memory than the file, where the kernel sets no "
        "probes: calls are missing; use `cudatrace attach`\n",
        probed->pid, image->name);
}

void ct_probed_exec(struct ct_probed *probed)
{
    if (probed->link >= 0)
        ct_link_send(probed->link, CT_LINK_EXEC, -1);
    probed->has_executed = true;
}

static void note_writer_end(struct ct_probed *probed, int status)
{
    probed->writer = 0;
    read_link(probed);
    close(probed->link);
    probed->link = -1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    fprintf(stderr, "cudatrace-probe: process %d: its writer has ended (%s %d)\n", probed->pid,
            WIFSIGNALED(status) ? "signal" : "status",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    probed->needs_writer = WIFSIGNALED(status) && probed->writers < WRITERS_MAX;
    if (WIFSIGNALED(status) && !probed->needs_writer)
        fprintf(stderr, "cudatrace-probe: process %d: calls are missing: %u of its writers were killed\n",
                probed->pid, probed->writers);
}

/* Starts a new writer, because the previous writer may have left calls in the ring. If that fails,
 * ct_probed_reap() will try again. */
static void replace_writer(struct ct_probed_set *set, struct ct_probed *probed)
{
    const int error = start_writer(set, probed, ct_monotonic_ns(), 0, false);
    probed->needs_writer = error && probed->writers < WRITERS_MAX;
    if (error && !probed->needs_writer)
        fprintf(stderr, "cudatrace-probe: process %d: no writer can be started: %s; calls are missing\n",
                probed->pid, strerror(-error));
}

static void clear_arriving(struct ct_probed_set *set, const struct ct_probed *probed)
{
    if (probed->channel.ring >= 0)
        __atomic_store_n(&set->functions->arriving[probed->channel.number], 0, __ATOMIC_RELEASE);
}

/* Skips a process after its writer has found the hook in it. The channel stays with the process, whose
 * threads may use it. */
static void skip_found(struct ct_probed_set *set, struct ct_probed *probed)
{
    probed->is_skipped = true;
    if (!probed->has_executed)
        ct_channel_give(set->programs, probed->pid, NULL);
}

void ct_probed_reap(struct ct_probed_set *set)
{
    for (struct ct_probed *probed = set->first, *next; probed; probed = next) {
        int status;
        next = probed->next;
        ct_hook_segment_is_held(&probed->hook);
        if (probed->writer > 0)
            read_link(probed);
        if (probed->writer > 0 && waitpid(probed->writer, &status, WNOHANG) == probed->writer)
            note_writer_end(probed, status);
        if (probed->needs_writer)
            replace_writer(set, probed);
        if (probed->writer > 0 || probed->needs_writer)
            continue;
        clear_arriving(set, probed);
        if (probed->has_hook && !probed->is_skipped)
            skip_found(set, probed);
        if (has_ended(probed))
            forget(set, probed);
    }
}

/* When the probe gives up waiting for writers. */
struct patience {
    uint64_t until_ns, stopped_until_ns;
};

/* Waits until the writer exits, but at most until the given times or another Ctrl-C. Returns whether the
 * writer has exited. The signals must be blocked. */
static bool await_end(pid_t writer, struct patience *patience, int *status)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGCHLD);
    while (waitpid(writer, status, WNOHANG) == 0) {
        const int number = sigtimedwait(&signals, NULL, &(struct timespec){ .tv_nsec = 10000000 });
        const uint64_t now_ns = ct_monotonic_ns();
        if (number == SIGINT || number == SIGTERM || now_ns >= patience->until_ns) {
            patience->until_ns = 0;
            return false;
        }
        if (now_ns >= patience->stopped_until_ns && ct_proc_is_stopped(writer))
            return false;
    }
    return true;
}

/* Continues the writer if the process's user has stopped it. The kernel permits this signal within the
 * probe's session, even to a writer that runs as another user. */
static void end_recording(const struct ct_probed *probed)
{
    if (probed->link >= 0)
        shutdown(probed->link, SHUT_WR);
    if (probed->writer > 0)
        kill(probed->writer, SIGCONT);
}

static void finish(struct ct_probed_set *set, struct ct_probed *probed, struct patience *patience)
{
    int status = 0;
    end_recording(probed);
    while (probed->needs_writer || (probed->writer > 0 && await_end(probed->writer, patience, &status))) {
        if (!probed->needs_writer)
            note_writer_end(probed, status);
        if (probed->needs_writer)
            replace_writer(set, probed);
        end_recording(probed);
    }
    if (probed->writer > 0) {
        fprintf(stderr, "cudatrace-probe: process %d: its writer does not end; calls may be missing\n",
                probed->pid);
        kill(probed->writer, SIGKILL);
    }
    forget(set, probed);
}

void ct_probed_finish(struct ct_probed_set *set)
{
    const uint64_t now_ns = ct_monotonic_ns();
    struct patience patience = { .until_ns = now_ns + FINISH_NS, .stopped_until_ns = now_ns + STOPPED_NS };
    struct ct_probed *arrivals = NULL;
    for (struct ct_probed *probed = set->first; probed; probed = probed->next) {
        if (probed->is_arrivals)
            arrivals = probed;
        else
            end_recording(probed);
    }
    /* The arrivals writer must end last: while it runs, the daemon waits for segments that the other writers
     * have not created yet. */
    for (struct ct_probed *probed = set->first, *next; probed; probed = next) {
        next = probed->next;
        if (probed != arrivals)
            finish(set, probed, &patience);
    }
    if (arrivals)
        finish(set, arrivals, &patience);
}
