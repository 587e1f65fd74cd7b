#include "writer_link.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

union control {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr aligned;
};

/* A packet socket keeps each descriptor together with its message, and reports when the other side has closed
 * its end. */
int ct_link_make(int end[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, end) == 0 ? 0 : -errno;
}

void ct_link_send(int end, enum ct_link_message message, int descriptor)
{
    uint8_t byte = (uint8_t)message;
    struct iovec bytes = { .iov_base = &byte, .iov_len = sizeof(byte) };
    union control control = { 0 };
    struct msghdr packet = { .msg_iov = &bytes, .msg_iovlen = 1 };
    if (descriptor >= 0) {
        packet.msg_control = &control;
        packet.msg_controllen = sizeof(control);
        struct cmsghdr *rights = CMSG_FIRSTHDR(&packet);
        *rights = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                                    .cmsg_type = SCM_RIGHTS,
                                    .cmsg_len = CMSG_LEN(sizeof(descriptor)) };
        memcpy(CMSG_DATA(rights), &descriptor, sizeof(descriptor));
    }
    sendmsg(end, &packet, MSG_DONTWAIT | MSG_NOSIGNAL);
}

enum ct_link_message ct_link_take(int end, int *descriptor)
{
    uint8_t byte = CT_LINK_NOTHING;
    struct iovec bytes = { .iov_base = &byte, .iov_len = sizeof(byte) };
    union control control;
    struct msghdr packet = {
        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
    };
    *descriptor = -1;
    if (recvmsg(end, &packet, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0)
        return CT_LINK_NOTHING;
    const struct cmsghdr *rights = CMSG_FIRSTHDR(&packet);
    if (rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS)
        memcpy(descriptor, CMSG_DATA(rights), sizeof(*descriptor));
    return (enum ct_link_message)byte;
}

/* The rings are watched edge-triggered, since the writer usually polls them. */
int ct_link_watch(int ring, int notices, int pidfd, int link)
{
    const struct {
        int fd;
        uint32_t events;
    } watched[CT_WATCHED_COUNT] = {
        [CT_WATCHED_RING] = { ring, EPOLLIN | EPOLLET },
        [CT_WATCHED_NOTICES] = { notices, EPOLLIN | EPOLLET },
        [CT_WATCHED_PROCESS] = { pidfd, EPOLLIN },
        [CT_WATCHED_LINK] = { link, EPOLLIN },
    };
    const int poll = epoll_create1(EPOLL_CLOEXEC);
    for (uint32_t i = 0; poll >= 0 && i < CT_WATCHED_COUNT; i++) {
        struct epoll_event event = { .events = watched[i].events, .data.u32 = i };
        if (watched[i].fd >= 0 && epoll_ctl(poll, EPOLL_CTL_ADD, watched[i].fd, &event) != 0) {
            close(poll);
            return -1;
        }
    }
    return poll;
}
