#include "control_lock.h"

#include "control.h"
#include "log.h"
#include "proc_file.h"
#include "test_point.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

enum state {
    FREE,
    READ,    /* read locks, also of other users if they can read the file */
    TOOL,    /* a lock with a process ID, which the tool will release soon */
    UNKNOWN, /* no such daemon: another one has the lock, but has not written its process ID yet */
    SERVING,
    STOPPING, /* stores its last calls */
    EXITING,  /* was killed, or is in exit() */
};

struct holder {
    enum state state;
    pid_t pid;
};

#ifndef CT_CONTROL_PATIENCE_NS
#define CT_CONTROL_PATIENCE_NS UINT64_C(10000000000)
#endif

struct ct_control_wait ct_control_wait_begin(const char *session, int starter)
{
    return (struct ct_control_wait){
        .session = session,
        .starter = starter,
        .until_ns = ct_monotonic_ns() + CT_CONTROL_PATIENCE_NS,
    };
}

static bool is_pending(uint64_t pending, int signal)
{
    return pending >> (signal - 1) & 1;
}

/* A daemon that has exited no longer has the lock, even if its parent has not reaped it. If /proc cannot be
 * read, assumes that the daemon is alive. */
static enum state state_of_daemon(pid_t pid, bool is_closing)
{
    struct ct_proc_stat stat = { 0 };
    struct ct_proc_status status = { 0 };
    const int error = pid > 0 ? ct_proc_stat(pid, &stat) : -ESRCH;
    if (error == -ESRCH || stat.ended)
        return UNKNOWN;
    if (ct_proc_status(pid, &status) != 0)
        status.pending = 0;
    if (stat.first_ending || is_pending(status.pending, SIGKILL))
        return EXITING;
    const bool is_told = is_pending(status.pending, SIGTERM) || is_pending(status.pending, SIGINT);
    return is_closing || is_told ? STOPPING : SERVING;
}

/* A daemon's lock has no process ID, but the file contains the ID. Until a new daemon has written its own, it
 * is that of an earlier daemon. */
static struct holder find_daemon(int fd)
{
    struct ct_control control = { 0 };
    const ssize_t bytes = pread(fd, &control, offsetof(struct ct_control, gpu_until_ns), 0);
    if (bytes < (ssize_t)offsetof(struct ct_control, gpu_until_ns) || control.magic != CT_CONTROL_MAGIC)
        return (struct holder){ .state = UNKNOWN };
    const bool is_closing = control.version == CT_PROTO_VERSION && atomic_load(&control.closing);
    return (struct holder){ state_of_daemon(control.daemon_pid, is_closing), control.daemon_pid };
}

/* A daemon that takes the signal that ends it is neither told nor closing for a moment. */
static struct holder remember(struct ct_control_wait *wait, struct holder holder)
{
    if (holder.state == STOPPING || holder.state == EXITING)
        wait->ending = holder.pid;
    else if (holder.state == SERVING && holder.pid == wait->ending)
        holder.state = STOPPING;
    return holder;
}

static struct holder find_holder(int fd)
{
    struct flock held = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    if (fcntl(fd, F_OFD_GETLK, &held) != 0)
        return (struct holder){ .state = SERVING };
    if (held.l_type == F_UNLCK)
        return (struct holder){ .state = FREE };
    if (held.l_type == F_RDLCK)
        return (struct holder){ .state = READ };
    return held.l_pid > 0 ? (struct holder){ TOOL, held.l_pid } : find_daemon(fd);
}

static const char *doing(const struct holder *holder)
{
    return holder->state == STOPPING ? "stopping" : "exiting";
}

static void log_once(struct ct_control_wait *wait, const struct holder *holder)
{
    if (wait->is_logged || (holder->state != STOPPING && holder->state != EXITING))
        return;
    wait->is_logged = true;
    ct_log(CT_LOG_session_awaited,
           "session '%s' is served by another cudatraced (process %d), which is %s: waiting for it",
           wait->session, holder->pid, doing(holder));
}

/* Waits until the daemon has exited, but not for long: the lock may be released earlier, and the process ID
 * may belong to another PID namespace. Returns false if the starter's pipe was closed. */
static bool wait_a_while(const struct ct_control_wait *wait, const struct holder *holder)
{
    enum { STEP_MS = 20 };
    const bool ends = holder->state == STOPPING || holder->state == EXITING;
    const int pidfd = ends ? (int)syscall(SYS_pidfd_open, holder->pid, 0) : -1;
    struct pollfd files[] = { { .fd = pidfd, .events = POLLIN }, { .fd = wait->starter } };
    CT_TEST_POINT("control_lock.waiting");
    poll(files, sizeof(files) / sizeof(files[0]), STEP_MS);
    if (pidfd >= 0)
        close(pidfd);
    return !files[1].revents;
}

static void name_holder(const struct ct_control_wait *wait, const struct holder *holder,
                        char message[CT_MESSAGE_BYTES])
{
    if (holder->state == STOPPING || holder->state == EXITING)
        ct_message(
            message,
            "session '%s' is still served by another cudatraced (process %d), which is %s: wait for it, "
            "or choose another --session",
            wait->session, holder->pid, doing(holder));
    else if (holder->state == TOOL)
        ct_message(message,
                   "session '%s' is locked by another program (process %d): wait for it, or choose another "
                   "--session",
                   wait->session, holder->pid);
    else
        ct_message(
            message,
            "session '%s' is served by another cudatraced (process %d): stop it with `cudatrace stop`, "
            "or choose another --session",
            wait->session, holder->pid);
}

/* Takes an open file description lock, which no other close() in this process can drop. */
enum ct_control_locking ct_control_lock(int fd, struct ct_control_wait *wait, char message[CT_MESSAGE_BYTES])
{
    for (;;) {
        const struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
        if (fcntl(fd, F_OFD_SETLK, &whole) == 0)
            return CT_CONTROL_LOCKED;
        const struct holder holder = remember(wait, find_holder(fd));
        if (holder.state == READ)
            return CT_CONTROL_READ;
        if (holder.state == SERVING || ct_monotonic_ns() >= wait->until_ns) {
            name_holder(wait, &holder, message);
            return CT_CONTROL_HELD;
        }
        log_once(wait, &holder);
        if (holder.state != FREE && !wait_a_while(wait, &holder)) {
            message[0] = '\0';
            return CT_CONTROL_HELD;
        }
    }
}
