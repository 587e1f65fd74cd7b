/* The socket that connects the probe with a writer. The writer ends when the probe closes the socket, or
 * shuts it down for sending. */
#ifndef CT_PROBE_WRITER_LINK_H
#define CT_PROBE_WRITER_LINK_H

enum ct_link_message {
    CT_LINK_NOTHING = 0, /* there is no message, or the other end is closed */
    /* To the writer. */
    CT_LINK_EXEC, /* the process has executed another program: no more records will follow */
    /* To the probe. */
    CT_LINK_READY, /* the process has a segment, or there is no daemon */
    CT_LINK_LOCK,  /* the descriptor holds the lock of the segment that the writer makes next */
    CT_LINK_HOOK,  /* the hook records the process, and the writer ends */
    CT_LINK_KNOWN, /* the daemon knows the last segment whose lock was sent */
};

/* Makes the two ends. Returns 0 or -errno. */
int ct_link_make(int end[2]);
/* Sends a message without waiting, with a descriptor if it is not -1. The message is lost if the other end is
 * closed, or if its buffer is full. */
void ct_link_send(int end, enum ct_link_message message, int descriptor);
/* Takes the next message without waiting. Sets *descriptor to the message's descriptor, which the caller
 * owns, or to -1. */
enum ct_link_message ct_link_take(int end, int *descriptor);

/* Creates an epoll descriptor that watches the given descriptors; those that are -1 are left out. The data of
 * each event is an enum ct_watched. An event for the process or the link means that no more records will
 * follow. Returns -1 on failure. */
enum ct_watched {
    CT_WATCHED_RING,
    CT_WATCHED_NOTICES,
    CT_WATCHED_PROCESS,
    CT_WATCHED_LINK,
    CT_WATCHED_COUNT
};
int ct_link_watch(int ring, int notices, int pidfd, int link);

#endif
