/* The session's shared memory as the collector sees it: the processes that write to it, each with its
 * segment, opened, checked and mapped, and its lanes. Nothing that a segment says is believed: geometry is
 * read once, checked and copied; every index and length is checked at each use; a process that breaks the
 * rules is detached.
 *
 * A process is opened by the loop thread and then handed over: all runs on the worker thread, but for what is
 * marked otherwise. */
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

/* A lane's position has 63 bits: the producer publishes it with one bit more. */
#define CT_POSITION_MAX (UINT64_MAX >> 1)

/* An entry of the directory that was called: shm_functions.c. */
struct ct_shm_function {
    struct ct_callee callee;
    uint64_t lost, skipped; /* as saved */
    uint16_t entry;
};

struct ct_shm_process {
    struct ct_process who;
    struct ct_account account;
    struct ct_shm *shm; /* the source, once the process is handed over */
    char path[CT_NAME_BYTES];
    int fd;
    _Atomic bool unnamed; /* set by the loop thread: its file was removed, and it is to make another one */
    bool final;     /* its writer had ended when this batch began: what is there now is all there will be */
    bool detached;  /* its hook was told to let go */
    bool call_soon; /* its hook is to look up at its next record: it is detached, or has a wish to follow */
    const char *broken; /* the rule that it broke, NULL for none */
    int64_t changed_ns; /* when its file was changed last but by writing to it: nobody can set it back */
    int64_t made_ns;    /* when it was made; 0: its file system does not tell (tmpfs before Linux 5.18) */

    struct ct_segment facts; /* copied at open and checked, its times turned into ours */
    bool is_ahead_known;     /* it is known how far its clocks are ahead of ours: not so of one that was gone
                                before it was looked at */
    uint64_t ahead_ticks;    /* how far its records are ahead, where they are times of CLOCK_MONOTONIC */
    struct ct_segment *shared;
    struct ct_guard *guard;
    struct ct_segment_map map;

    /* shm_functions.c's; what scans is shm_unsent.c's. */
    uint32_t published; /* entries of the directory, as the batch found them */
    uint16_t *places;   /* entries' places in `functions`, from 1; 0: not called yet. NULL: none was called */
    struct ct_shm_function **functions;
    uint32_t function_count;
    size_t function_room;
    bool scans;        /* counters of entries are being looked at, from scan_at on */
    bool scanned_last; /* and were since it ended */
    uint32_t scan_at;
    uint32_t merged; /* functions that are counted as one, for want of a share */

    struct ct_lane_source **lanes;
    uint32_t lane_count;
    size_t lane_room;
    uint32_t lanes_wait; /* for which there is no room, or no memory */
    bool lanes_refused;  /* no room */
    bool unfinished;     /* something but calls is left for the next batch */
    uint64_t synced_ns;  /* the batch at which it was looked at last: lanes that come later begin behind it */
    bool open_saved;     /* the database has the open calls of `open_signature`, and no others */
    uint64_t open_signature; /* 0 also where none is open */
    uint64_t unlaned_saved;  /* calls of segment->unlaned */
    uint64_t complete_ns;    /* a probe's: the moment of segment->complete, read before its lanes */

    struct ct_shm_process *next;
};

/* The source. The members up to `timeline` are the owner's to set; all others start as zero. */
struct ct_shm {
    struct ct_source source;    /* first */
    const char *dir;            /* the folder of the session's segments */
    struct ct_control *control; /* its `sleeping` is set between batches */
    /* Processes that nobody follows may still run, an earlier daemon's and those that broke a rule: their end
     * is looked for until none is left. */
    bool orphans;
    struct ct_timeline timeline; /* begins with the first batch */
    struct ct_shm_process *processes;
    struct ct_holding held;  /* by all users */
    uint32_t segments_known; /* control->segments as it was before the last look for new ones, all of which
                                are in `processes` */
    uint64_t looked_ns;      /* when that look began */
    uint64_t all_known_ns;   /* when those were last all there were */
    uint64_t silent_ns; /* the watermark before any lane lowered it: who is found silent was so until then */
    uint64_t meta_written_ns;
    /* In the first batch: what earlier daemons collected of processes that nobody collects from now returned
     * up to then. 0 in later batches. */
    uint64_t earlier_until_ns;
    bool has_begun;
    uint32_t sleeps; /* counts what control->sleeping was set to, for the system's session */
    /* The last batch found nothing. `sleeping` then stays set: whoever publishes rings, or did so long enough
     * ago to be seen by the next batch. */
    bool quiet;
    uint64_t give_back_bytes; /* of rings' memory in this batch, at most */
    bool detaching;           /* no process is to write to its segment any more */
    /* Handed over between the threads. */
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

static inline bool ct_shm_is_probed(const struct ct_shm_process *process)
{
    return process->facts.maker == CT_MAKER_PROBE;
}

/* The moment of a tick of the segment's clock, which need not be the session's, by our clock. */
static inline uint64_t ct_shm_ns(const struct ct_shm_process *process, uint64_t ticks, size_t *hint)
{
    if (process->facts.clock == CT_CLOCK_MONOTONIC)
        return ticks - process->ahead_ticks;
    return ct_timeline_ns(&process->shm->timeline, ticks, hint);
}
/* A number of its ticks as nanoseconds. */
static inline uint64_t ct_shm_span_ns(const struct ct_shm_process *process, uint64_t ticks)
{
    if (process->facts.clock == CT_CLOCK_MONOTONIC)
        return ticks;
    return ct_timeline_span_ns(&process->shm->timeline, ticks);
}
/* Returns the time of a moment that the process says is past: now, if the process lies. */
static inline uint64_t ct_shm_past_ns(const struct ct_shm_process *process, uint64_t ticks, size_t *hint)
{
    return ct_shm_at_most(ct_shm_ns(process, ticks, hint), ct_monotonic_ns());
}

#endif
