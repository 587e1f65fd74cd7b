/* A traced process as the collector sees it: its segment, opened, checked and mapped, and its lanes. Nothing
 * that the segment says is believed: geometry is read once, checked and copied; every index and length is
 * checked at each use; a process that breaks the rules is detached.
 *
 * Opened by the loop thread and then handed over: everything after ct_process_open() runs on the worker
 * thread, but for the members marked otherwise. */
#ifndef CT_PROCESS_H
#define CT_PROCESS_H

#include "cut_guard.h"
#include "merge.h"
#include "segment.h"
#include "segment_map.h"
#include "session_names.h"
#include "store.h"
#include "tally.h"
#include "ticks.h"
#include "user.h"

#include <stdatomic.h>
#include <sys/types.h>

struct ct_lane_source;

/* More than the calls of nine years at a million a second; and thirty-six years, or an exabyte: sums of a few
 * of these are numbers to SQLite still. */
#define CT_UNSENT_CALLS_MAX (UINT64_C(1) << 48)
#define CT_UNSENT_SUM_MAX   (UINT64_C(1) << 60)
/* Of lanes: what the producer publishes has 63 bits. */
#define CT_POSITION_MAX (UINT64_MAX >> 1)

/* What the collector knows of an entry of the directory that was called: process_functions.c. Most processes
 * use a few dozen of the thousands that there may be. */
struct ct_process_function {
    int64_t function_id;    /* 0: not looked up since the store's last generation */
    uint64_t lost, skipped; /* as saved */
    uint32_t total;         /* place of its sums in this batch, from 1; 0: it has none yet */
    uint16_t entry;
    bool is_driver; /* of that layer */
};

/* Sums of a function's rows in this batch. */
struct ct_process_total {
    struct ct_total_facts facts;
    uint32_t function; /* its place */
};

struct ct_process {
    char path[CT_NAME_BYTES];
    int fd;
    int pidfd;         /* -1 when the process was gone already, or cannot be had */
    int32_t looked_up; /* where there can be no pidfd: the pid to look for in /proc; otherwise 0 */
    _Atomic bool dead; /* set by the loop thread when pidfd says so, or by the worker's look */
    _Atomic bool unnamed; /* set by the loop thread: its file was removed, and it is to make another one */
    bool final;        /* it was dead when this batch began: what is there now is all there will be */
    bool detached;     /* its hook was told to let go */
    bool call_soon;  /* its hook is to look up at its next record: it is detached, or has a wish to follow */
    bool registered; /* has rows in the database */
    const char *broken; /* what rule it broke, NULL for none */
    dev_t device;       /* of its file */
    ino_t inode;
    int64_t changed_ns;  /* when its file was changed last but by writing to it: nobody can set it back */
    int32_t seen_pid;    /* the process's, as it is seen from here; 0 when it is not */
    uint32_t generation; /* of the store's numbers */

    struct ct_segment facts; /* copied at open and checked, its times turned into ours */
    bool is_ahead_known;     /* how far its clocks are ahead of ours: not of one that was gone before it was
                                looked at */
    uint64_t ahead_ticks;    /* of its records, where they are times of CLOCK_MONOTONIC */
    struct ct_segment *shared;
    struct ct_guard *guard;

    int64_t process_id, segment_id;
    /* process_functions.c's. */
    uint32_t published; /* entries of the directory, as the batch found them */
    uint16_t *places;   /* of entries in `functions`, from 1; 0: not called yet. NULL: none was */
    struct ct_process_function *functions;
    uint32_t function_count, function_room;
    struct ct_process_total *totals;
    uint32_t total_count, total_room;
    bool scans;        /* counters of entries are being looked at, from scan_at on */
    bool scanned_last; /* and were since it ended */
    uint32_t scan_at;
    uint32_t merged; /* functions that are counted as entry 0, for want of a share */

    struct ct_tally tally; /* of the rows of this batch: ct_process_count() */
    struct ct_segment_map map;
    struct ct_lane_source **lanes;
    uint32_t lane_count, lane_room;
    uint32_t lanes_wait; /* for which there is no room, or no memory */
    bool lanes_refused;  /* no room */
    bool unfinished;     /* something but calls is left for the next batch */
    uint64_t synced_ns; /* the batch at which it was looked at last: lanes that come later begin behind it */
    bool open_saved;    /* the database has the open calls of `open_signature`, and no others */
    uint64_t open_signature; /* 0 also where none is open */
    uint64_t unlaned_saved;  /* calls of segment->unlaned */

    struct ct_user *user;    /* in the system's session; otherwise NULL */
    struct ct_process *next; /* the worker's list */
    void *loop_data;         /* the loop thread's */
};

/* What lanes and processes need while a batch is made. */
struct ct_batch {
    struct ct_store *store;
    struct ct_timeline *timeline;
    struct ct_holding *held; /* by all users */
    uint64_t now_ns;
    uint64_t until_ns;  /* rows that returned at or before it are taken */
    uint64_t silent_ns; /* the same before any lane lowered it: who is found silent was so until then */
    bool snapshot_open; /* open calls are to be saved */
};

/* The moment of a tick of the process, by our clock. */
static inline uint64_t ct_process_ns(const struct ct_process *process, const struct ct_batch *batch,
                                     uint64_t ticks, size_t *hint)
{
    return ct_timeline_ns(batch->timeline, ticks - process->ahead_ticks, hint);
}
/* When a moment was that a process says is past: now, if it lies. */
uint64_t ct_process_past_ns(const struct ct_process *process, const struct ct_batch *batch, uint64_t ticks,
                            size_t *hint);

/* Opens the segment file at `path`, which must be that of `user`, and so must be the process behind it; NULL
 * for this process's own user, who deceives nobody but himself. 0 and a process that the caller owns; -EAGAIN
 * when its header is not complete yet; -EPERM, -ELOOP, -EPROTO and the like when it is none, with *reason a
 * short text. */
int ct_process_open(const char *path, struct ct_user *user, struct ct_process **result, const char **reason);
/* Whether a process of the database runs: by its descriptor where it is one of the list `processes`, since
 * its pid may be one of another namespace; else process `pid` must be the one that started then. */
bool ct_process_alive(const struct ct_running *running, const void *processes);
/* Whether the file at `path` is the one that was opened. */
bool ct_process_is_at(const struct ct_process *process, const char *path);
/* Whether the process that it names has the segment mapped, as its maker has until it ends or executes
 * another program. Nothing else tells whose a segment is. */
enum ct_process_hold { CT_HOLD_NO, CT_HOLD_YES, CT_HOLD_UNKNOWN };
enum ct_process_hold ct_process_hold(const struct ct_process *process);
/* Unmaps and frees; `remove` takes the file away too, if it is still there. NULL is fine. */
void ct_process_close(struct ct_process *process, bool remove);

/* Whether it has ended, or become another program, where no descriptor tells. */
bool ct_process_is_over(const struct ct_process *process);
/* Whether it ended by itself, once it has; false for one that was killed. */
bool ct_process_has_exited(const struct ct_process *process);

/* Makes the rows of the process, and of functions and lanes that are new. 0 or -1 for the store's error. */
int ct_process_sync(struct ct_process *process, struct ct_batch *batch);
/* How far back rows of this process may still come: lowers batch->until_ns, and takes the lanes' positions.
 * Bounded waits only. */
void ct_process_watermark(struct ct_process *process, struct ct_batch *batch);
/* The function of an entry below `published`, which is looked up when it is called first; and its sums. Never
 * NULL: where memory is short, which the store hears of, they are nobody's. They stay until the next call of
 * either. */
struct ct_process_function *ct_process_function(struct ct_process *process, struct ct_batch *batch,
                                                uint32_t entry);
struct ct_total_facts *ct_process_total(struct ct_process *process, struct ct_batch *batch,
                                        struct ct_process_function *function);
/* Reads how long the directory is. */
void ct_process_read_directory(struct ct_process *process);
/* Saves sums, and the counters of what was not sent, where the hook says that they moved. 0 or -1. */
int ct_process_save_functions(struct ct_process *process, struct ct_batch *batch);
/* What the store knew of them is void. */
void ct_process_revert_functions(struct ct_process *process);
/* Frees what is kept of them. */
void ct_process_forget_functions(struct ct_process *process);
/* Slots that are published and not stored, behind ct_process_watermark(). */
uint64_t ct_process_slots(const struct ct_process *process);
/* Leaves all but `share` of `of` parts of them for the next batch. */
void ct_process_hold_back(struct ct_process *process, uint64_t share, uint64_t of);
/* Adds the lanes to the merge. */
int ct_process_add(struct ct_process *process, struct ct_batch *batch, struct ct_merge *merge);
/* Saves positions, sums, losses and open calls. */
int ct_process_save(struct ct_process *process, struct ct_batch *batch);
/* After commit: gives the producers their room back. `selections` are the session's wishes, which the hook is
 * to follow. How full the fullest ring was when the batch began, in thousandths. */
uint32_t ct_process_publish(struct ct_process *process, bool idle, uint32_t selections);
/* Whether a status is one. "Not ready", of driver and runtime, is an answer. */
static inline bool ct_status_is_failure(int32_t status)
{
    return status != 0 && status != 600;
}
/* Counts a call among its function's durations, and a failed one by its status. */
void ct_process_count(struct ct_process *process, struct ct_batch *batch, const struct ct_record *record,
                      const struct ct_row *row);
/* Numbers of sites that the store gave are void. */
void ct_process_forget_sites(struct ct_process *process);
/* After rollback: positions as they were. */
void ct_process_revert(struct ct_process *process);
/* True while published calls wait to be stored. */
bool ct_process_has_backlog(const struct ct_process *process);
/* Calls published and not stored. */
uint64_t ct_process_waiting(struct ct_process *process);
/* Saves how the process went. */
int ct_process_end(struct ct_process *process, struct ct_batch *batch);
/* Tells the hook to let go. */
void ct_process_detach(struct ct_process *process);

#endif
