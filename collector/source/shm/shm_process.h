/* The collector's view of the session's shared memory: each process that writes to it, the process's segment
 * (opened, checked and mapped), and its lanes. The contents of a segment are not trusted. Its geometry is
 * read once, checked and copied. Every index and length is checked whenever it is used. A process that breaks
 * a rule is detached.
 *
 * The loop thread opens a process and hands it over to the worker thread. After the handover, everything runs
 * on the worker thread, except where noted. */
#ifndef CT_SHM_PROCESS_H
#define CT_SHM_PROCESS_H

#include "cut_guard.h"
#include "identity.h"
#include "segment.h"
#include "segment_map.h"
#include "session_names.h"
#include "source.h"
#include "ticks.h"

#include <pthread.h>

struct ct_lane_source;

/* A lane's position has only 63 bits, because the producer publishes it together with another bit. */
#define CT_POSITION_MAX (UINT64_MAX >> 1)

/* A directory entry whose function has been called (shm_functions.c). */
struct ct_shm_function {
    struct ct_callee callee;
    uint64_t lost, skipped; /* as last saved */
    uint16_t entry;
};

struct ct_shm_process {
    struct ct_process who;
    struct ct_account account;
    struct ct_shm *shm; /* the source, set when the process is handed over to the worker */
    char path[CT_NAME_BYTES];
    int fd;
    _Atomic bool unnamed; /* set by the loop thread: the file was removed, so the process must make another */
    bool final;           /* the writer had ended when this batch began, so nothing more will be written */
    bool detached;        /* the hook was notified to leave */
    bool call_soon;       /* must check the header at the next record: a detach, a selection, a GPU request */
    const char *broken;   /* the rule that the process broke, or NULL */
    int64_t changed_ns;   /* the file's last change other than a write (ctime); no process can set it back */
    int64_t made_ns;      /* when the file was created; 0: not reported (tmpfs before Linux 5.18) */

    struct ct_segment facts; /* copied and checked when opened, with times converted to the daemon's clocks */
    bool is_ahead_known;     /* the clocks' lead is known; false if the process exited before the lookup */
    uint64_t ahead_ticks;    /* the records' lead over the daemon's CLOCK_MONOTONIC; 0 for the counter */
    struct ct_segment *shared;
    struct ct_guard *guard;
    struct ct_segment_map map;

    /* Owned by shm_functions.c, except for the members for scans, which shm_drops.c owns. */
    uint32_t published; /* number of the directory's entries, as found by the batch */
    uint16_t *places;   /* indexes in `functions`, from 1; 0: not called yet. NULL: none was called */
    struct ct_shm_function **functions;
    uint32_t function_count;
    size_t function_room;
    bool scans;        /* a scan of the entries' counters is in progress, at scan_at */
    bool scanned_last; /* the counters were scanned after the process had ended */
    uint32_t scan_at;
    uint32_t merged; /* number of functions that are counted as one, because the share is used up */

    uint64_t unlaned_saved[CT_UNLANED_COUNT]; /* saved calls of segment->unlaned */

    struct ct_lane_source **lanes;
    uint32_t lane_count;
    size_t lane_room;
    uint32_t lanes_wait;       /* lanes without room or memory */
    bool lanes_refused;        /* lanes are waiting because the share is used up */
    bool unfinished;           /* something other than calls is left for the next batch */
    uint64_t synced_ns;        /* shm->silent_ns in the last batch; newer lanes have only later calls */
    bool open_saved;           /* the database has exactly the open calls of `open_signature` */
    uint64_t open_signature;   /* also 0 if there are no open calls */
    bool copied_saved;         /* CT_SEGMENT_COPIED has been saved */
    uint32_t gpu_saved;        /* segment->gpu of the saved result; 0: none was saved */
    uint64_t complete_read_ns; /* the time in a probe's segment->complete, read before the lanes */
    uint64_t complete_ns;      /* the last complete_read_ns read when all segments were known; 0: none yet */

    struct ct_shm_process *next;
    struct ct_shm_process *next_target; /* owned by the loop thread (gpu_request.h) */
};

/* The source. The owner sets the members before `timeline`. All other members start as zero. */
struct ct_shm {
    struct ct_source source;    /* first */
    const char *dir;            /* the folder of the session's segments */
    struct ct_control *control; /* control->sleeping is set between batches */
    /* There may be running processes that are not followed, because they belong to an earlier daemon or broke
     * a rule. The source checks whether they have exited until none are left. */
    bool orphans;
    struct ct_timeline timeline; /* begins with the first batch */
    struct ct_shm_process *processes;
    struct ct_holding held;  /* held by all users */
    uint32_t segments_known; /* control->segments before the last scan; `processes` has all of them */
    uint64_t looked_ns;      /* time when the last scan began */
    uint64_t all_known_ns;   /* when all segments were last known */
    uint64_t silent_ns; /* the watermark before lanes lower it; a lane found silent was silent until then */
    uint64_t meta_written_ns;
    /* In the first batch, the time just after the last call stored by earlier daemons; in later batches, 0.
     * If no daemon collects a process's calls, the process's state is recorded as CT_STATE_LEFT, as of this
     * time. */
    uint64_t earlier_until_ns;
    bool has_begun;
    uint32_t sleeps; /* counts the values of control->sleeping; only for the system session */
    /* Whether the last batch was empty, and no calls were waiting for a probe. After such a batch, `sleeping`
     * stays set. A producer that publishes a record then rings the doorbell, unless the next batch is certain
     * to see that record. */
    bool quiet;
    uint64_t give_back_bytes; /* how much memory of the rings may be returned in this batch */
    bool detaching;           /* processes must no longer write to their segments */
    /* Passed between the threads. */
    struct {
        pthread_mutex_t mutex;
        struct ct_shm_process *incoming, *gone;
        uint32_t segments;
        uint64_t looked_ns;
    } handed;
};

static inline struct ct_holding *ct_shm_holding(const struct ct_shm_process *process)
{
    return process->who.user ? &process->who.user->worker_has : NULL;
}

static inline uint64_t ct_shm_at_most(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

/* Returns whether a probe writes the segment. */
static inline bool ct_shm_is_probed(const struct ct_shm_process *process)
{
    return process->facts.maker != CT_MAKER_HOOK;
}

static inline bool ct_shm_is_companion(const struct ct_shm_process *process)
{
    return process->facts.maker == CT_MAKER_COMPANION;
}

/* Returns whether the segment contains events of the whole machine. The segment then describes the probe that
 * writes it, not a traced process. */
static inline bool ct_shm_is_of_machine(const struct ct_shm_process *process)
{
    return process->facts.maker == CT_MAKER_MACHINE;
}

/* Returns whether the segment may contain calls of the given layer. Each call is in exactly one segment. */
static inline bool ct_shm_may_have(const struct ct_shm_process *process, uint8_t layer)
{
    return !ct_shm_is_companion(process) || layer == CT_LAYER_KERNEL || layer == CT_LAYER_HOOK;
}

/* Converts a time from the segment's ticks to the daemon's clock. The session's clock may differ from the
 * segment's. */
static inline uint64_t ct_shm_ns(const struct ct_shm_process *process, uint64_t ticks, size_t *hint)
{
    if (process->facts.clock == CT_CLOCK_MONOTONIC)
        return ticks - process->ahead_ticks;
    return ct_timeline_ns(&process->shm->timeline, ticks, hint);
}
/* Converts a duration from the segment's ticks to nanoseconds. */
static inline uint64_t ct_shm_span_ns(const struct ct_shm_process *process, uint64_t ticks)
{
    if (process->facts.clock == CT_CLOCK_MONOTONIC)
        return ticks;
    return ct_timeline_span_ns(&process->shm->timeline, ticks);
}
/* Converts a time that must be in the past. Returns the current time if the process reports a later one. */
static inline uint64_t ct_shm_past_ns(const struct ct_shm_process *process, uint64_t ticks, size_t *hint)
{
    return ct_shm_at_most(ct_shm_ns(process, ticks, hint), ct_monotonic_ns());
}

#endif
