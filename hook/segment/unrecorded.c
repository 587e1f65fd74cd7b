#include "unrecorded.h"

#include "descriptor.h"
#include "error_guard.h"
#include "fork.h"
#include "program.h"
#include "real_user.h"
#include "system.h"
#include "unrecorded_report.h"

_Atomic bool ct_is_unrecorded;
static _Atomic uint64_t calls;
static struct ct_unrecorded_report report;
static struct sockaddr_un address;
static socklen_t address_bytes;
static uint32_t receiver; /* the user whose daemon has the address */
static _Atomic bool is_forbidden;

/* Returns whether there is a daemon. If its queue is full, the bytes are lost, and the caller sends them
 * again later. Keeps no descriptor, and never waits. */
static bool send_bytes(const void *bytes, size_t count)
{
    char map[CT_UID_MAP_BYTES];
    if (!address_bytes || atomic_load_explicit(&is_forbidden, memory_order_relaxed))
        return false;
    ct_descriptor_read("/proc/self/uid_map", map, sizeof(map));
    const int fd = ct_descriptor_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK);
    if (fd < 0)
        return false;
    const bool is_connected = connect(fd, (const struct sockaddr *)&address, address_bytes) == 0;
    const bool is_full = !is_connected && errno == EAGAIN;
    const bool is_sent = is_connected && ct_unrecorded_is_daemon(fd, map, receiver) &&
                         sendto(fd, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0) == (ssize_t)count;
    close(fd);
    return is_full || is_sent;
}

static bool send_report(void)
{
    report.calls = atomic_load_explicit(&calls, memory_order_relaxed);
    return send_bytes(&report, sizeof(report));
}

enum ct_unrecorded_cause ct_unrecorded_cause_of(int error)
{
    switch (error) {
    case EAGAIN:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
        return CT_UNRECORDED_MEMORY;
    default:
        return CT_UNRECORDED_FOLDER;
    }
}

bool ct_unrecorded_report(const struct ct_session *session, uint32_t uid, enum ct_unrecorded_cause cause,
                          int error, uint64_t exec_ns)
{
    static struct ct_program program; /* static, since the stack may be small */
    address_bytes = ct_unrecorded_address(&address, session->dir, uid, session->name);
    receiver = uid;
    if (report.magic == 0) {
        /* Usually, there is neither a file nor a daemon, and the description would be in vain. */
        if (error == ENOENT && !send_bytes("", 0))
            return false;
        ct_program_describe(&program, ct_fork_pid(), true);
    }
    report.magic = CT_UNRECORDED_MAGIC;
    report.cause = cause;
    report.error = (uint32_t)error;
    report.image = exec_ns;
    memcpy(report.cmdline, program.cmdline, sizeof(report.cmdline) - 1);
    const bool is_sent = send_report();
    if (is_sent)
        atomic_store(&ct_is_unrecorded, true);
    return is_sent;
}

void ct_unrecorded_count(void)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
}

void ct_unrecorded_end(void)
{
    if (!atomic_exchange(&ct_is_unrecorded, false) || !ct_system_begin())
        return;
    CT_ERROR_GUARD;
    send_report();
    ct_system_end();
}

void ct_unrecorded_forbid(void)
{
    atomic_store_explicit(&is_forbidden, true, memory_order_relaxed);
}

void ct_unrecorded_forget(void)
{
    atomic_store(&ct_is_unrecorded, false);
    atomic_store(&calls, 0);
    report.magic = 0;
}
