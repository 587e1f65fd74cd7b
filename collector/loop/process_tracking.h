/* Tracks the session's processes for the loop. Finds processes, hands them over to the worker, watches for
 * their exit, and closes them when the worker returns them. Used only on the loop thread. */
#ifndef CT_PROCESS_TRACKING_H
#define CT_PROCESS_TRACKING_H

#include "followed.h"
#include "gpu_request.h"
#include "shm_source.h"
#include "unrecorded_source.h"
#include "watch.h"

struct ct_session;

enum { CT_LEFT_NAMED_MAX = 64, CT_LEFT_BYTES = 16 + 12 * CT_LEFT_NAMED_MAX };

struct ct_tracking {
    struct ct_shm shm;               /* a source for the worker, which continues with the next one */
    struct ct_unrecorded unrecorded; /* the processes without a segment; a source, too */
    struct ct_watch *watch;
    struct ct_followed followed;
    struct ct_gpu_targets gpu_targets; /* all processes that have not been closed */
    uint32_t segments_seen;
    uint64_t detached;        /* processes that violated the protocol */
    char left[CT_LEFT_BYTES]; /* set by ct_tracking_end(): "COUNT PID …" of the processes that keep running,
                               * with the first CT_LEFT_NAMED_MAX pids */
    void (*on_found)(void *data);
    void *data;
};

/* The caller keeps ownership of `dir`, the folder of the segments, and of `control`. Calls `on_found` for
 * each new process, and `on_end` for each process whose exit the loop detects. */
void ct_tracking_init(struct ct_tracking *tracking, uv_loop_t *loop, const char *dir,
                      struct ct_control *control, void (*on_found)(void *data), void (*on_end)(void *data),
                      void *data);
/* Returns 0 or a libuv error. */
int ct_tracking_start(struct ct_tracking *tracking, const struct ct_session *session, bool system);
/* Looks for new segments. Finds every segment that a hook counted before the call. */
void ct_tracking_look(struct ct_tracking *tracking);
/* Looks for new segments only if the number of segments, which the hooks count, has risen. */
void ct_tracking_look_for_counted(struct ct_tracking *tracking);
/* Finds everything that a flush must include, such as segments just created and processes that have just
 * exited. */
void ct_tracking_look_around(struct ct_tracking *tracking);
/* Closes the processes returned by the worker. Returns whether there were any. */
bool ct_tracking_close_gone(struct ct_tracking *tracking);
/* Call after the worker has ended. Records in the ledger, unless it is NULL, which processes have exited and
 * which keep running. Closes the remaining processes. Calls that were not read, for example because of
 * `cut_short`, stay in shared memory for the next daemon. */
void ct_tracking_end(struct ct_tracking *tracking, struct ct_ledger *ledger, bool cut_short);
void ct_tracking_finish(struct ct_tracking *tracking);

#endif
