/* Receives the reports of processes that cannot create a segment (proto/unrecorded_report.h), and saves a
 * fact for each of these processes, and for each process whose segment is refused.
 *
 * Any user may send reports. The kernel provides the PID and the user of a report. The number of processes is
 * bounded for each other user, and for all of them together. A few places are kept for users with few
 * processes.
 *
 * A probe may report other processes, if it is run by root or by the daemon's own user. There is no bound,
 * since recording these processes would have taken more space. */
#ifndef CT_UNRECORDED_SOURCE_H
#define CT_UNRECORDED_SOURCE_H

#include "source.h"
#include "unrecorded_report.h"

#include <uv.h>

enum {
    CT_UNRECORDED_MAX = 512, /* remembered at once. The daemon's own user may have reported more */
    CT_UNRECORDED_WAITING = 16,
};

/* A process that has connected. It sends its report at once, or never. */
struct ct_connection {
    int fd;
    uint64_t since_ns; /* CLOCK_MONOTONIC */
};

struct ct_unrecorded_process {
    struct ct_unrecorded_facts facts;
    uint64_t start_ticks;  /* 0: unknown, because the process had already ended */
    uint64_t image;        /* its last program */
    int64_t earlier_calls; /* of its earlier programs */
    uint32_t cause;
    int error;
    const char *reason; /* of a refusal; NULL: the error is the reason */
    char cmdline[sizeof(((struct ct_unrecorded_report *)NULL)->cmdline)];
    bool is_bounded; /* counts for the bounds of other users */
    bool is_new;     /* not saved since its last report */
    bool is_saved;   /* in the batch that is being made */
};

struct ct_unrecorded {
    struct ct_source source; /* first; for the worker */
    uv_poll_t poll;
    uv_timer_t pause; /* until more reports may be read */
    void (*on_report)(void *data);
    void *data;
    uint32_t own_uid;
    _Atomic uint32_t reported; /* processes that have sent a report or were refused */
    _Atomic uint32_t unprobed; /* processes that a probe has reported */
    uv_mutex_t lock;           /* for the following, which the loop and the worker share */
    int socket;                /* -1: reports cannot be received */
    struct ct_connection waiting[CT_UNRECORDED_WAITING]; /* their reports have not arrived yet */
    uint32_t waiting_count;
    struct ct_unrecorded_process process[CT_UNRECORDED_MAX];
    uint32_t count, others;
};

/* `on_report` is called on the loop thread after a process has been added or has changed. */
void ct_unrecorded_init(struct ct_unrecorded *unrecorded, void (*on_report)(void *data), void *data);
/* Listens for reports to the daemon of user `uid` in the session. If this is not possible, writes to the log.
 */
void ct_unrecorded_listen(struct ct_unrecorded *unrecorded, uv_loop_t *loop, const char *dir, uint32_t uid,
                          const char *session);
/* Adds a process whose segment the daemon refuses to read. `uid` is the owner of the file. `reason` is never
 * freed. Call on the loop thread. */
void ct_unrecorded_refused(struct ct_unrecorded *unrecorded, int32_t pid, uint32_t uid, const char *reason);
/* Stops listening. Call on the loop thread after the worker has ended. */
void ct_unrecorded_finish(struct ct_unrecorded *unrecorded);

#endif
