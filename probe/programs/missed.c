#include "missed.h"

#include "clock.h"
#include "room.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS   UINT64_C(1000000000)
#define PATIENCE_NS (10 * SECOND_NS)
enum { PRINTED_PER_SECOND = 10, BLOCKED_USERS = 16 };

static const char *reason(int error)
{
    return error == -EDQUOT ? "its user's processes have three quarters of the channels that are free"
           : error == -ENOSPC
               ? "no channel is free (too many processes have started at once, or the limit of "
                 "open files is low)"
               : strerror(-error);
}

/* ---- messages ---- */

/* Prints how many messages were left out of the last second. */
static void print_rest(struct ct_missed *missed, uint64_t now_ns)
{
    if (now_ns - missed->printed_ns < SECOND_NS)
        return;
    if (missed->unprinted > 0)
        fprintf(stderr, "cudatrace-probe: %u more processes are not recorded, for the same reasons\n",
                missed->unprinted);
    missed->printed_ns = now_ns;
    missed->printed = missed->unprinted = 0;
}

/* A thousand lines could block the probe for longer than it takes to record the processes. */
static void print(struct ct_missed *missed, const struct ct_missed_process *process)
{
    print_rest(missed, ct_monotonic_ns());
    if (missed->printed >= PRINTED_PER_SECOND) {
        missed->unprinted++;
        return;
    }
    missed->printed++;
    fprintf(stderr, "cudatrace-probe: process %d: its %s not recorded: %s\n", process->pid,
            process->is_companion ? "events are" : "calls are", reason(process->error));
}

/* ---- reports ---- */

static struct ct_missed_report *add(struct ct_missed *missed)
{
    struct ct_missed_report *waiting =
        missed->count < CT_MISSED_REPORTS &&
                ct_make_room(&missed->waiting, missed->count, &missed->room, sizeof(*missed->waiting))
            ? &missed->waiting[missed->count++]
            : NULL;
    if (waiting)
        *waiting = (struct ct_missed_report){ .report.magic = CT_UNRECORDED_MAGIC };
    return waiting;
}

static size_t count_of(const struct ct_missed *missed, uid_t uid)
{
    size_t count = 0;
    for (size_t i = 0; i < missed->count; i++)
        count += missed->waiting[i].report.uid == uid;
    return count;
}

void ct_missed_add(struct ct_missed *missed, const struct ct_missed_process *process)
{
    const size_t place = (size_t)process->pid % (sizeof(missed->recent) / sizeof(missed->recent[0]));
    if (missed->recent[place].pid == process->pid && missed->recent[place].program == process->program)
        return;
    missed->recent[place].pid = process->pid;
    missed->recent[place].program = process->program;
    print(missed, process);
    struct ct_missed_report *waiting =
        count_of(missed, process->uid) < CT_MISSED_OF_USER ? add(missed) : NULL;
    if (!waiting) {
        missed->unlisted++;
        return;
    }
    struct ct_unrecorded_report *report = &waiting->report;
    report->cause = process->is_companion ? CT_UNRECORDED_EVENTS : CT_UNRECORDED_PROBE;
    report->error = (uint32_t)-process->error;
    report->image = process->program;
    report->pid = process->pid;
    report->uid = process->uid;
    report->processes = 1;
    snprintf(report->cmdline, sizeof(report->cmdline), "[%s]", process->name);
}

void ct_missed_add_unlisted(struct ct_missed *missed, uint32_t count)
{
    missed->unlisted += count;
}

/* Adds one report for all processes that have none. */
static void report_unlisted(struct ct_missed *missed)
{
    struct ct_missed_report *waiting = missed->unlisted > 0 ? add(missed) : NULL;
    if (!waiting)
        return;
    struct ct_unrecorded_report *report = &waiting->report;
    report->cause = CT_UNRECORDED_PROBE;
    report->error = ENOBUFS;
    report->image = ct_monotonic_ns();
    report->pid = getpid();
    report->uid = geteuid();
    report->processes = missed->unlisted;
    snprintf(report->cmdline, sizeof(report->cmdline), "[%u processes]", missed->unlisted);
    fprintf(stderr, "cudatrace-probe: %u processes are not recorded, and not listed: they are too many\n",
            missed->unlisted);
    missed->unlisted = 0;
}

/* Sends the report to the user's daemon. Returns as send_one(). */
static int send_to(const struct ct_missed *missed, uid_t owner, const struct ct_unrecorded_report *report)
{
    struct sockaddr_un address;
    char map[CT_UID_MAP_BYTES];
    const socklen_t bytes = ct_unrecorded_address(&address, missed->dir, owner, missed->session);
    const int fd = bytes ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
    if (fd < 0)
        return -ECONNREFUSED;
    int error = -ECONNREFUSED;
    ct_session_read_map(map);
    if (connect(fd, (const struct sockaddr *)&address, bytes) != 0)
        error = errno == EAGAIN ? -EAGAIN : -ECONNREFUSED;
    else if (ct_unrecorded_is_daemon(fd, map, owner) &&
             send(fd, report, sizeof(*report), MSG_NOSIGNAL) == sizeof(*report))
        error = 0;
    close(fd);
    return error;
}

/* Sends the report to the daemon that would store the process's calls: that of its user, or of root, or of
 * the probe's own user. Returns 0, -EAGAIN if that daemon is busy, or -ECONNREFUSED if there is none. */
static int send_one(const struct ct_missed *missed, const struct ct_unrecorded_report *report)
{
    const uid_t owners[] = { report->uid, 0, geteuid() };
    for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
        const int error = send_to(missed, owners[i], report);
        if (error != -ECONNREFUSED)
            return error;
    }
    return -ECONNREFUSED;
}

/* Whoever binds the name of a user's socket may keep its reports from being read. Other users' reports do not
 * wait for that. */
struct blocked {
    uid_t uid[BLOCKED_USERS];
    size_t count;
};

static bool is_blocked(const struct blocked *blocked, uid_t uid)
{
    for (size_t i = 0; i < blocked->count; i++) {
        if (blocked->uid[i] == uid)
            return true;
    }
    return blocked->count == BLOCKED_USERS;
}

bool ct_missed_send(struct ct_missed *missed)
{
    const uint64_t now_ns = ct_monotonic_ns();
    print_rest(missed, now_ns);
    report_unlisted(missed);
    struct blocked blocked = { .count = 0 };
    size_t kept = 0;
    for (size_t i = 0; i < missed->count; i++) {
        struct ct_missed_report *waiting = &missed->waiting[i];
        int error = -EAGAIN;
        if (!is_blocked(&blocked, waiting->report.uid)) {
            error = send_one(missed, &waiting->report);
            if (error == -EAGAIN)
                blocked.uid[blocked.count++] = waiting->report.uid;
        }
        if (waiting->since_ns == 0)
            waiting->since_ns = now_ns;
        if (error == -EAGAIN && now_ns - waiting->since_ns < PATIENCE_NS)
            missed->waiting[kept++] = *waiting;
        else if (error == -EAGAIN)
            fprintf(stderr, "cudatrace-probe: process %d is not listed in the trace: its daemon is busy\n",
                    waiting->report.pid);
    }
    missed->count = kept;
    return kept > 0;
}

void ct_missed_finish(struct ct_missed *missed)
{
    const uint64_t until_ns = ct_monotonic_ns() + SECOND_NS;
    while (ct_missed_send(missed) && ct_monotonic_ns() < until_ns)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    missed->printed_ns = 0;
    print_rest(missed, ct_monotonic_ns());
    free(missed->waiting);
    missed->waiting = NULL;
    missed->count = missed->room = 0;
}
