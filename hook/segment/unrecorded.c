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

/* Returns whether there is a daemon. If its queue is full, the bytes are lost, and the caller sends them
 * again later. Keeps no descriptor, and never waits. */
static bool send_bytes(const void *bytes, size_t count)
{
    const int fd = address_bytes ? ct_descriptor_socket(AF_UNIX, SOCK_DGRAM) : -1;
    if (fd < 0)
        return false;
    const ssize_t sent = sendto(fd, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL,
                                (const struct sockaddr *)&address, address_bytes);
    const bool is_full = sent < 0 && errno == EAGAIN;
    close(fd);
    return is_full || sent == (ssize_t)count;
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

void ct_unrecorded_forget(void)
{
    atomic_store(&ct_is_unrecorded, false);
    atomic_store(&calls, 0);
    report.magic = 0;
}
