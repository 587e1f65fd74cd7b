#include "run_command.h"

#include "proc.h"
#include "say.h"
#include "traced_environment.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The messages exchanged by the front (this process) and the keeper. Each message is one packet. */
enum kind {
    /* from the front */
    SIGNALLED, /* the front has received signal `value` with `info` */
    SYNC,      /* request for SYNCED */
    GOING,     /* the front has learned that the command continued at `turn` */
    WOKEN,     /* the front stopped along with the command at `turn`, and was woken by process `value` */
    /* from the keeper */
    NOT_STARTED, /* errno `value` */
    STOPPED,     /* the command was stopped by signal `value` at `turn` */
    GOES_ON,     /* the command continued, at `turn` */
    ENDED,       /* the command has ended with wait status `value` */
    SYNCED,
};
struct packet {
    int kind, value;
    int turn; /* how often the keeper has seen the command stop or continue */
    siginfo_t info;
};

static sigset_t inherited_mask;

static void post(int channel, const struct packet *packet)
{
    while (send(channel, packet, sizeof(*packet), MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
}

static void tell_at(int channel, enum kind kind, int value, int turn)
{
    post(channel, &(struct packet){ .kind = (int)kind, .value = value, .turn = turn });
}

static void tell(int channel, enum kind kind, int value)
{
    tell_at(channel, kind, value, 0);
}

/* Receives a packet. Returns false if the other side has exited. If the other side exited without reading all
 * packets, recv() fails once with ECONNRESET before it returns the other side's last packets. */
static bool hear(int channel, struct packet *packet)
{
    ssize_t got;
    while ((got = recv(channel, packet, sizeof(*packet), 0)) < 0 && (errno == EINTR || errno == ECONNRESET))
        ;
    return got == sizeof(*packet);
}

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Closes the files that this process and the command have inherited. A reader that waits for the end of a
 * pipe must not have to wait for this process. Keeps standard error and the given descriptors. Redirects the
 * standard descriptors up to `last` to /dev/null. */
static void let_go_of_files(int last, int first_kept, int second_kept, int third_kept, int fourth_kept)
{
    int kept[] = { STDERR_FILENO, first_kept, second_kept, third_kept, fourth_kept };
    enum { KEPT = sizeof(kept) / sizeof(kept[0]) };
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; null > STDERR_FILENO && fd <= last; fd++)
        dup3(null, fd, O_CLOEXEC);
    qsort(kept, KEPT, sizeof(kept[0]), compare);
    for (int i = 0; i < KEPT; i++) {
        const unsigned from = (unsigned)kept[i] + 1, to = i + 1 < KEPT ? (unsigned)kept[i + 1] - 1 : ~0U;
        if (from <= to)
            syscall(SYS_close_range, from, to, 0U);
    }
}

/* ---- the keeper ---- */

struct keeper {
    const struct ct_command_plan *plan;
    int channel, children;
    pid_t front, command;
    bool is_stopped; /* the last known state of the command */
    int turn;        /* the turn (see struct packet) at which `is_stopped` last changed */
    bool is_late;    /* the command has continued, but the front has not confirmed this yet */
    bool has_ended;
};

/* Executes the command with the SIGCHLD action and the signal mask that `run` inherited. */
static void become_command(const struct ct_command_plan *plan, const struct sigaction *on_child)
{
    sigaction(SIGCHLD, on_child, NULL);
    if (!plan->prepare(plan->data))
        _exit(EXIT_FAILURE);
    sigprocmask(SIG_SETMASK, &inherited_mask, NULL);
    execvp(plan->argv[0], plan->argv);
    const int error = errno;
    char why[CT_EXEC_WHY_BYTES];
    ct_fail(0, "run: %s: %s", plan->argv[0], ct_traced_environment_why(error, why));
    _exit(error == ENOENT ? 127 : 126);
}

/* Consumes a pending signal with this number, and returns whether there was one. Such a signal was sent to
 * our process group, so the command has already received it. */
static bool was_sent_here(int number)
{
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, number);
    return sigtimedwait(&wanted, NULL, &(struct timespec){ 0 }) == number;
}

static void pass_on(const struct keeper *keeper, int number, siginfo_t *info)
{
    /* A pending SIGCHLD may be from the keeper's own child, so it does not prove that the group received
     * one. */
    if (number != SIGCHLD && was_sent_here(number))
        return;
    /* Preserve the value passed to sigqueue(). Other kinds of siginfo can only be sent by the kernel. */
    if (info->si_code != SI_QUEUE || syscall(SYS_rt_sigqueueinfo, keeper->command, number, info) != 0)
        kill(keeper->command, number);
}

static void look_at_command(struct keeper *keeper)
{
    int status;
    while (!keeper->has_ended && waitpid(keeper->command, &status, WNOHANG | WUNTRACED | WCONTINUED) > 0) {
        keeper->is_stopped = WIFSTOPPED(status);
        keeper->is_late = WIFCONTINUED(status);
        keeper->has_ended = WIFEXITED(status) || WIFSIGNALED(status);
        if (WIFSTOPPED(status))
            tell_at(keeper->channel, STOPPED, WSTOPSIG(status), ++keeper->turn);
        else if (WIFCONTINUED(status))
            tell_at(keeper->channel, GOES_ON, 0, ++keeper->turn);
        else
            tell(keeper->channel, ENDED, status);
    }
}

/* The signals with which a terminal stops a whole process group. */
static const int group_stops[] = { SIGTSTP, SIGTTIN, SIGTTOU };
enum { GROUP_STOPS = sizeof(group_stops) / sizeof(group_stops[0]) };

/* Wakes the front if it has stopped along with the command and missed that the command has continued. Leaves
 * the front stopped if a signal that stops the whole group is pending, because the command has received the
 * same signal. */
static void wake_front(const struct keeper *keeper)
{
    sigset_t pending;
    sigpending(&pending);
    for (int i = 0; i < GROUP_STOPS; i++) {
        if (sigismember(&pending, group_stops[i]))
            return;
    }
    if (keeper->is_late && ct_proc_is_stopped(keeper->front))
        kill(keeper->front, SIGCONT);
}

/* Continues the command if another process has woken the front after the stop at `turn`. If that process woke
 * the whole group, the command has already continued. If the command's last stop was at a later turn, the
 * command has been stopped again, and remains stopped. */
static void continue_as_front(struct keeper *keeper, bool by_others, int turn)
{
    was_sent_here(SIGCONT);
    look_at_command(keeper);
    if (by_others && keeper->is_stopped && keeper->turn == turn)
        kill(keeper->command, SIGCONT);
}

/* Handles a packet from the front. Returns false if the front has exited. */
static bool listen_to_front(struct keeper *keeper)
{
    struct packet packet;
    if (!hear(keeper->channel, &packet))
        return false;
    switch (packet.kind) {
    case SIGNALLED:
        pass_on(keeper, packet.value, &packet.info);
        break;
    case SYNC:
        look_at_command(keeper);
        tell(keeper->channel, SYNCED, 0);
        break;
    case GOING:
        keeper->is_late &= packet.turn != keeper->turn;
        break;
    case WOKEN:
        continue_as_front(keeper, packet.value != (int)getpid(), packet.turn);
        break;
    default:
        break;
    }
    return true;
}

/* Kills the command after the front has been killed, as if the command had received the signal itself. */
static void end_orphan(const struct keeper *keeper)
{
    int status;
    kill(keeper->command, SIGKILL);
    while (waitpid(keeper->command, &status, 0) < 0 && errno == EINTR)
        ;
    keeper->plan->on_orphaned(keeper->plan->data);
}

static void keep(struct keeper *keeper)
{
    enum { AGAIN_MS = 20 };
    struct signalfd_siginfo seen;
    struct pollfd files[] = { { .fd = keeper->channel, .events = POLLIN },
                              { .fd = keeper->children, .events = POLLIN } };
    while (!keeper->has_ended) {
        const bool in_time = poll(files, 2, keeper->is_late ? AGAIN_MS : -1) != 0;
        if (files[0].revents && !listen_to_front(keeper)) {
            end_orphan(keeper);
            return;
        }
        while (read(keeper->children, &seen, sizeof(seen)) > 0)
            ;
        look_at_command(keeper);
        if (!in_time)
            wake_front(keeper);
    }
}

static void become_keeper(const struct ct_command_plan *plan, int channel, pid_t front)
{
    struct sigaction on_child;
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = SIG_DFL }, &on_child);
    struct keeper keeper = { .plan = plan,
                             .channel = channel,
                             .children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK),
                             .front = front };
    keeper.command = keeper.children < 0 ? -1 : fork();
    if (keeper.command == 0)
        become_command(plan, &on_child);
    if (keeper.command < 0) {
        tell(channel, NOT_STARTED, errno);
        _exit(EXIT_FAILURE);
    }
    let_go_of_files(STDERR_FILENO, channel, keeper.children, plan->keep, plan->keep);
    keep(&keeper);
    _exit(EXIT_SUCCESS);
}

/* ---- this process ---- */

struct front {
    int channel, signals;
    pid_t keeper;
};

/* Reaps children other than the keeper, which this process inherits if it is PID 1 in a container. */
static void reap(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}

static void pass_signals(const struct front *front)
{
    struct signalfd_siginfo seen;
    while (read(front->signals, &seen, sizeof(seen)) == sizeof(seen)) {
        const int number = (int)seen.ssi_signo;
        const pid_t sender = (pid_t)seen.ssi_pid;
        if (number == SIGCHLD && seen.ssi_code > 0) {
            reap();
            continue;
        }
        if (number == SIGCONT && sender == front->keeper)
            continue;
        if (number == SIGPIPE && sender == getpid())
            continue; /* raised by our own write */
        struct packet packet = { .kind = SIGNALLED, .value = number };
        packet.info.si_signo = number;
        packet.info.si_code = seen.ssi_code;
        packet.info.si_pid = sender;
        packet.info.si_uid = seen.ssi_uid;
        packet.info.si_value.sival_ptr = (void *)(uintptr_t)seen.ssi_ptr;
        post(front->channel, &packet);
    }
}

static sigjmp_buf woken;
static volatile pid_t woken_by;

/* The SIGCONT handler used by stop_as(). Runs with all signals blocked, and leaves them blocked. */
static void on_woken(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    woken_by = info->si_pid;
    siglongjmp(woken, 1);
}

/* Stops this process the way the command was stopped, until another process continues it. No signal may get
 * lost between this stop and the next one. A stop signal that arrives while SIGCONT is pending discards
 * SIGCONT, so this process stops again, as the command does. At any other time, the stop signal is blocked. A
 * terminal's signals cannot stop an orphaned process group, in which this function returns at once. */
static void stop_as(int number)
{
    struct sigaction before, before_woken, goes_on = { .sa_sigaction = on_woken, .sa_flags = SA_SIGINFO };
    sigset_t open;
    woken_by = 0;
    sigemptyset(&open);
    sigaddset(&open, SIGCONT);
    if (number != SIGSTOP)
        sigaddset(&open, number);
    sigfillset(&goes_on.sa_mask);
    sigaction(number, &(struct sigaction){ .sa_handler = SIG_DFL }, &before);
    sigaction(SIGCONT, &goes_on, &before_woken);
    if (sigsetjmp(woken, 0) == 0) {
        if (number != SIGSTOP)
            raise(number);
        sigprocmask(SIG_UNBLOCK, &open, NULL);
        if (number == SIGSTOP)
            raise(number);
        sigprocmask(SIG_BLOCK, &open, NULL);
    }
    sigaction(SIGCONT, &before_woken, NULL);
    sigaction(number, &before, NULL);
}

enum heard { NOTHING, END, LOST };

static enum heard listen_to_keeper(const struct front *front, int *wait_status)
{
    struct packet packet;
    if (!hear(front->channel, &packet)) {
        ct_fail(
            0,
            "run: process %d, which waited for the command, was killed; the command's exit status is unknown",
            (int)front->keeper);
        return LOST;
    }
    switch (packet.kind) {
    case STOPPED: {
        /* A stop signal discards a pending SIGCONT, and SIGCONT discards pending stop signals. The keeper
         * must therefore check its pending signals before this process stops. */
        int number = packet.value, turn = packet.turn;
        pass_signals(front);
        tell(front->channel, SYNC, 0);
        do {
            if (!hear(front->channel, &packet))
                return NOTHING; /* the next call finds that the keeper has exited, and reports it */
            if (packet.kind == ENDED) {
                *wait_status = packet.value;
                return END;
            }
            if (packet.kind == GOES_ON) {
                tell_at(front->channel, GOING, 0, packet.turn);
                return NOTHING;
            }
            if (packet.kind == STOPPED) /* the command has stopped again, and was not seen to continue */
                number = packet.value, turn = packet.turn;
        } while (packet.kind != SYNCED);
        stop_as(number);
        tell_at(front->channel, WOKEN, woken_by, turn);
        return NOTHING;
    }
    case GOES_ON:
        tell_at(front->channel, GOING, 0, packet.turn);
        return NOTHING;
    case ENDED:
        *wait_status = packet.value;
        return END;
    case NOT_STARTED:
        ct_fail(0, "run: cannot fork: %s", strerror(packet.value));
        return LOST;
    default:
        return NOTHING;
    }
}

/* Relays signals and state changes until the command has ended. Returns false if its wait status is
 * unknown. */
static bool stand_for(const struct front *front, int *wait_status)
{
    struct pollfd files[] = { { .fd = front->signals, .events = POLLIN },
                              { .fd = front->channel, .events = POLLIN } };
    for (;;) {
        poll(files, 2, -1);
        if (files[0].revents)
            pass_signals(front);
        const enum heard heard = files[1].revents ? listen_to_keeper(front, wait_status) : NOTHING;
        if (heard != NOTHING)
            return heard == END;
    }
}

bool ct_command_run(const struct ct_command_plan *plan, int *wait_status)
{
    const pid_t self = getpid();
    sigset_t all;
    int ends[2] = { -1, -1 };
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &inherited_mask);
    struct front front = { .signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK) };
    if (front.signals < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0 ||
        (front.keeper = fork()) < 0) {
        ct_fail(0, "run: cannot start a process: %s", strerror(errno));
        return false;
    }
    if (front.keeper == 0) {
        close(ends[0]);
        close(front.signals);
        become_keeper(plan, ends[1], self);
    }
    front.channel = ends[0];
    let_go_of_files(STDOUT_FILENO, front.channel, front.signals, plan->keep, plan->front);
    if (plan->on_started)
        plan->on_started(plan->data);
    const bool known = stand_for(&front, wait_status);
    /* Discard signals that arrived as the command ended, because they were meant for the command. */
    struct signalfd_siginfo seen;
    while (read(front.signals, &seen, sizeof(seen)) > 0)
        ;
    close(front.channel);
    close(front.signals);
    return known;
}

/* ---- the end ---- */

/* Ends this process by a signal's default action. */
static void die_of(int number)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    signal(number, SIG_DFL);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
}

static volatile sig_atomic_t wanted_end;

static void on_end_wanted(int number)
{
    enum { PATIENCE_S = 2 };
    wanted_end = number;
    alarm(PATIENCE_S);
}

static void on_patience_over(int number)
{
    (void)number;
    die_of(wanted_end);
}

void ct_command_wait_as_usual(void)
{
    sigprocmask(SIG_SETMASK, &inherited_mask, NULL);
}

void ct_command_release(void)
{
    static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    sigset_t open;
    sigemptyset(&open);
    for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
        struct sigaction before;
        if (sigaction(ending[i], NULL, &before) != 0 || before.sa_handler == SIG_IGN ||
            sigismember(&inherited_mask, ending[i]))
            continue;
        sigaction(ending[i], &(struct sigaction){ .sa_handler = on_end_wanted, .sa_flags = SA_RESTART },
                  NULL);
        sigaddset(&open, ending[i]);
    }
    sigaction(SIGALRM, &(struct sigaction){ .sa_handler = on_patience_over, .sa_flags = SA_RESTART }, NULL);
    alarm(0);
    sigaddset(&open, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &open, NULL);
}

/* This process dumps no core, because the command has already done so. */
int ct_command_end_as(int wait_status)
{
    if (!WIFSIGNALED(wait_status))
        return WEXITSTATUS(wait_status);
    const int number = WTERMSIG(wait_status);
    setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
    prctl(PR_SET_DUMPABLE, 0);
    die_of(number);
    return 128 + number;
}
