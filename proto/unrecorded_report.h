/* The report of a process that cannot create a segment, and that the daemon would not notice otherwise. The
 * process connects to the session's abstract socket, because it may be unable to open the session's files,
 * and sends one report (SOCK_SEQPACKET). The kernel provides the PID and the user of each end. Any user may
 * send reports, so the daemon bounds their number.
 *
 * A probe reports other processes. The daemon accepts this only from root and from its own user. */
#ifndef CT_PROTO_UNRECORDED_REPORT_H
#define CT_PROTO_UNRECORDED_REPORT_H

#include "session_names.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define CT_UNRECORDED_MAGIC UINT64_C(0x3252535554445543) /* the bytes "CUDTUSR2" */

enum ct_unrecorded_cause {
#define UNRECORDED(constant, name, explanation) CT_UNRECORDED_##constant,
#include "unrecorded.def"
#undef UNRECORDED
    CT_UNRECORDED_COUNT
};

/* Returns whether a probe reports processes with this cause. */
static inline bool ct_unrecorded_is_probes(uint32_t cause)
{
    return cause == CT_UNRECORDED_PROBE || cause == CT_UNRECORDED_EVENTS;
}

struct ct_unrecorded_report {
    uint64_t magic;
    uint32_t cause;     /* enum ct_unrecorded_cause */
    uint32_t error;     /* errno */
    uint64_t image;     /* distinguishes the programs that a process executes */
    uint64_t calls;     /* made without a segment so far */
    int32_t pid;        /* of a process that a probe reports; 0: the sender */
    uint32_t uid;       /* its user */
    uint32_t processes; /* that a probe reports: 1, or more if they are too many to be listed */
    uint32_t reserved;
    char cmdline[256];
};
static_assert(sizeof(struct ct_unrecorded_report) == 304, "ct_unrecorded_report");

/* Fills in the address of a session's socket, which is not a file. Returns its length, or 0 if the name is
 * too long. */
static inline socklen_t ct_unrecorded_address(struct sockaddr_un *address, const char *dir, uint32_t uid,
                                              const char *session)
{
    char path[CT_NAME_BYTES];
    ct_session_bell_path(path, dir, uid, session);
    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    const size_t bytes = strlen(path);
    if (bytes >= sizeof(address->sun_path))
        return 0;
    memcpy(address->sun_path + 1, path, bytes); /* after a NUL, which makes the name abstract */
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + bytes);
}

/* Returns whether the process at the other end of a connection belongs to the user whose daemon is meant, or
 * to root. Any user may bind the name of a session's socket. `map` is this process's uid_map, and `receiver`
 * is the user's number in the parent of this user namespace, as in the address. Users that the map lacks
 * look the same. Makes one system call, getsockopt(). */
static inline bool ct_unrecorded_is_daemon(int fd, const char *map, uint32_t receiver)
{
    struct ucred peer;
    socklen_t bytes = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0)
        return false;
    const uint32_t user = ct_session_uid_in(map, peer.uid);
    return user == receiver || user == 0 || ct_session_uid_is_shared(map, peer.uid);
}

#endif
