#include "probed.h"

#include "clock.h"
#include "proc_file.h"
#include "program.h"
#include "writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READY_MS = 2000, WRITERS_MAX = 16 };
#define FINISH_NS UINT64_C(10000000000) /* for all writers together, after the last call */

struct ct_probed *ct_probed_find(const struct ct_probed_set *set, pid_t pid)
{
    struct ct_probed *probed = set->first;
    while (probed && probed->pid != pid)
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

/* ---- writers ---- */

/* Closes, in the writer, all descriptors that are not in the plan. An open descriptor of a link would keep
 * the probes attached after the probe was killed. */
static void close_others(const struct ct_writer_plan *plan)
{
    const int kept[] = { plan->pidfd,   plan->ring,   plan->threads, plan->lost,
                         plan->notices, plan->parent, plan->ready,   plan->hook->fd };
    DIR *open_files = opendir("/proc/self/fd");
    if (!open_files)
        _exit(EXIT_FAILURE);
    for (struct dirent *entry; (entry = readdir(open_files)) != NULL;) {
        const int fd = atoi(entry->d_name); /* 0 for "." and ".." */
        bool is_kept = fd <= STDERR_FILENO || fd == dirfd(open_files);
        for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
            is_kept |= kept[i] == fd;
        if (!is_kept)
            close(fd);
    }
    closedir(open_files);
}

static void be_writer(const struct ct_writer_plan *plan)
{
    sigset_t none;
    close_others(plan);
    /* Ctrl-C ends the probe, which ends its writers. */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    _exit(ct_writer_run(plan));
}

/* Waits until the writer has a segment, has found no daemon, or has ended. */
static void wait_until_ready(int ready)
{
    struct pollfd answer = { .fd = ready, .events = POLLIN };
    while (ready >= 0 && poll(&answer, 1, READY_MS) < 0 && errno == EINTR)
        ;
}

/* Does not wait for the writer of a process that the kernel has found, because other notices may be
 * waiting. */
static int start_writer(struct ct_probed_set *set, struct ct_probed *probed, uint64_t since_ns,
                        const struct ct_probe_notice *found)
{
    int to_writer[2] = { -1, -1 }, ready[2] = { -1, -1 };
    const struct ct_probe_cost cost = ct_programs_cost(set->programs);
    struct ct_writer_plan plan = {
        .pid = probed->pid,
        .start_ticks = probed->start_ticks,
        .exec_ns = probed->exec_ns,
        .name = found ? found->name : NULL,
        .since_ns = since_ns,
        .absent_ns = found ? found->missed_ns : 0,
        .arriving = probed->channel.ring >= 0 ? &set->functions->arriving[probed->channel.number] : NULL,
        .in_flight = probed->channel.ring >= 0 ? &set->functions->in_flight[probed->channel.number] : NULL,
        .ready = -1,
        .hook = &probed->hook,
        .ring = probed->channel.ring,
        .threads = probed->channel.threads,
        .lost = probed->channel.lost,
        .notices = probed->is_arrivals ? ct_programs_notices(set->programs) : -1,
        .functions = set->functions,
        .entry_ns = cost.seen_ns / 2,
        .return_ns = cost.seen_ns - cost.seen_ns / 2,
    };
    if (plan.in_flight && probed->writers == 0)
        *plan.in_flight = 0; /* of the channel's last process */
    struct ct_proc_status status;
    int error = ct_proc_status(probed->pid, &status);
    if (error && !found)
        return error;
    plan.uid = error ? found->uid : status.effective;
    plan.gid = error ? found->gid : status.group;
    plan.pidfd = (int)syscall(SYS_pidfd_open, probed->pid, 0);
    if ((plan.pidfd >= 0 || found) && pipe2(to_writer, O_CLOEXEC) == 0 &&
        (found || pipe2(ready, O_CLOEXEC) == 0)) {
        plan.parent = to_writer[0];
        plan.ready = ready[1];
        probed->writer = fork();
        if (probed->writer == 0)
            be_writer(&plan);
    }
    error = probed->writer > 0 ? 0 : -errno;
    if (error)
        probed->writer = 0;
    const int others[] = { plan.pidfd, to_writer[0], ready[1] };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (others[i] >= 0)
            close(others[i]);
    }
    probed->to_writer = to_writer[1];
    probed->writers++;
    if (!error)
        wait_until_ready(ready[0]);
    if (ready[0] >= 0)
        close(ready[0]);
    return error;
}

/* ---- the set ---- */

/* The notice has the start of the process, which may have ended. */
static struct ct_probed *insert(struct ct_probed_set *set, pid_t pid, const struct ct_probe_notice *found)
{
    const uint64_t tick_ns = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
    struct ct_proc_stat stat = { .start_ticks = found ? found->started_ns / tick_ns : 0 };
    struct ct_probed *probed = found || ct_proc_stat(pid, &stat) == 0 ? calloc(1, sizeof(*probed)) : NULL;
    if (!probed)
        return NULL;
    probed->pid = pid;
    probed->start_ticks = stat.start_ticks;
    probed->to_writer = -1;
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

/* Removes a skipped process whose visit is over. Returns the hook's segment, which the caller owns. */
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
    if (probed->to_writer >= 0)
        close(probed->to_writer);
    ct_hook_segment_close(&probed->hook);
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
                                    : ct_program_start_ns(probed->start_ticks);
    probed->channel = *channel;
    const uint64_t now_ns = ct_monotonic_ns();
    /* A library may be probed already, so calls may be made from now on. For a process that the kernel has
     * found, this flag was set before its notice was consumed. */
    __atomic_store_n(&set->functions->arriving[channel->number], 1, __ATOMIC_RELEASE);
    int error = found ? 0 : ct_channel_give(set->programs, pid, channel);
    if (error) {
        forget(set, probed);
        return error;
    }
    error = start_writer(set, probed, found ? found->ns : now_ns, found);
    /* Its threads use the channel, so no other process gets the channel before this one has ended. */
    if (error) {
        ct_channel_give(set->programs, pid, NULL);
        __atomic_store_n(&set->functions->arriving[channel->number], 0, __ATOMIC_RELEASE);
    }
    return error;
}

int ct_probed_begin(struct ct_probed_set *set)
{
    struct ct_probed *probed = insert(set, getpid(), NULL);
    if (!probed)
        return -ENOMEM;
    probed->is_arrivals = true;
    probed->exec_ns = ct_program_start_ns(probed->start_ticks);
    return start_writer(set, probed, ct_monotonic_ns(), NULL);
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

void ct_probed_set_hook(struct ct_probed *probed, const struct ct_mapped_drivers *images)
{
    if (*images->segment)
        ct_hook_segment_open(&probed->hook, images->segment);
}

void ct_probed_exec(struct ct_probed *probed)
{
    const char message = CT_WRITER_EXEC;
    if (probed->to_writer >= 0 && write(probed->to_writer, &message, 1) < 0) {
        /* The writer has ended: ct_probed_reap() finds that. */
    }
    probed->pid = 0; /* the id is now the other program's */
}

static bool has_ended(const struct ct_probed *probed)
{
    struct ct_proc_stat stat;
    if (probed->pid == 0)
        return true;
    const int error = ct_proc_stat(probed->pid, &stat);
    return error ? error == -ESRCH : stat.ended || stat.start_ticks != probed->start_ticks;
}

static void note_writer_end(struct ct_probed_set *set, struct ct_probed *probed, int status)
{
    probed->writer = 0;
    if (probed->channel.ring >= 0)
        __atomic_store_n(&set->functions->arriving[probed->channel.number], 0, __ATOMIC_RELEASE);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    fprintf(stderr, "cudatrace-probe: process %d: its writer has ended (%s %d)\n", probed->pid,
            WIFSIGNALED(status) ? "signal" : "status",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    if (WIFSIGNALED(status) && probed->writers < WRITERS_MAX && !has_ended(probed)) {
        close(probed->to_writer);
        start_writer(set, probed, ct_monotonic_ns(), NULL);
    }
}

void ct_probed_reap(struct ct_probed_set *set)
{
    for (struct ct_probed *probed = set->first, *next; probed; probed = next) {
        int status;
        next = probed->next;
        ct_hook_segment_is_held(&probed->hook);
        if (probed->writer > 0 && waitpid(probed->writer, &status, WNOHANG) == probed->writer)
            note_writer_end(set, probed, status);
        if (probed->writer == 0 && has_ended(probed))
            forget(set, probed);
    }
}

/* Waits for the writer to exit, until the given time or another Ctrl-C. Returns whether it has exited.
 * The signals are blocked. */
static bool await_end(pid_t writer, uint64_t until_ns)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGCHLD);
    while (waitpid(writer, NULL, WNOHANG) == 0) {
        const int number = sigtimedwait(&signals, NULL, &(struct timespec){ .tv_nsec = 10000000 });
        if (number == SIGINT || number == SIGTERM || ct_monotonic_ns() >= until_ns)
            return false;
    }
    return true;
}

static void end_recording(struct ct_probed *probed)
{
    if (probed->to_writer >= 0)
        close(probed->to_writer);
    probed->to_writer = -1;
}

static void finish(struct ct_probed_set *set, struct ct_probed *probed, uint64_t *until_ns)
{
    end_recording(probed);
    if (probed->writer > 0 && !await_end(probed->writer, *until_ns)) {
        fprintf(stderr, "cudatrace-probe: process %d: its writer does not end; calls may be missing\n",
                probed->pid);
        kill(probed->writer, SIGKILL);
        *until_ns = 0;
    }
    forget(set, probed);
}

void ct_probed_finish(struct ct_probed_set *set)
{
    uint64_t until_ns = ct_monotonic_ns() + FINISH_NS;
    struct ct_probed *arrivals = NULL;
    for (struct ct_probed *probed = set->first; probed; probed = probed->next) {
        if (probed->is_arrivals)
            arrivals = probed;
        else
            end_recording(probed);
    }
    /* The arrivals writer ends last. While it runs, the daemon waits for segments that the others have not
     * made yet. */
    for (struct ct_probed *probed = set->first, *next; probed; probed = next) {
        next = probed->next;
        if (probed != arrivals)
            finish(set, probed, &until_ns);
    }
    if (arrivals)
        finish(set, arrivals, &until_ns);
}
