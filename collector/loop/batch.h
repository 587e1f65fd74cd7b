/* Making a batch: from the lanes of all processes to one transaction. Called by the worker's thread, and by
 * the benchmark, which has no threads. */
#ifndef CT_BATCH_H
#define CT_BATCH_H

#include "shm_process.h"

/* What bounds a trace; 0 for no bound. */
struct ct_bounds {
    uint64_t keep_ns;   /* calls that returned longer ago are taken away */
    uint64_t max_bytes; /* of all files of the trace: it goes on in numbered ones, the oldest of which go */
};

/* What one file of it may take; 0 for any. */
uint64_t ct_bounds_share(const struct ct_bounds *bounds);

/* What is collected from, and where to. The members are the owner's to set; `merge` and what follows start as
 * zero. */
struct ct_collection {
    struct ct_store *store;
    const char *dir;            /* of the session's segments */
    struct ct_control *control; /* its `sleeping` is set between batches */
    struct ct_timeline timeline;
    struct ct_process *processes;
    uint32_t segments_known; /* control->segments as it was before the last look for new ones, all of which
                                are in `processes` */
    uint64_t looked_ns;      /* when that look began */
    uint64_t all_known_ns;   /* when those were last all there were */
    uint32_t sleeps;         /* counts what control->sleeping was set to, for the system's session */
    /* Processes that nobody follows may still run, an earlier daemon's and those that broke a rule: their end
     * is looked for until none is left. */
    bool orphans;
    /* The last batch found nothing. `sleeping` then stays set: whoever publishes rings, or did so long enough
     * ago to be seen by the next batch. */
    bool quiet;
    struct ct_merge merge;
    uint64_t meta_written_ns;
    struct ct_bounds bounds;
    uint64_t pruned_ns, go_on_after_ns; /* when files were looked through last; no next file before */
    bool next_file;                     /* was asked for, and not tried yet */
    bool detaching;                     /* no process is to write to its segment any more */
    struct ct_holding held;             /* by all users */
};

/* What a batch is asked for; several requests for one batch are one. */
struct ct_request {
    bool snapshot_open; /* open calls are to be saved */
    bool next_file;     /* the trace is to go on in its next file */
    bool detach;        /* the hooks are to let go of their segments */
    bool let_go;        /* and of those that there are now, to make others */
    uint64_t flush_ns;  /* what returned up to then must be in it; 0 for no matter */
};

enum { CT_CHECKPOINT_ERROR_BYTES = 256, CT_HELD_MAX = 8 };

/* What a batch brought. */
struct ct_report {
    /* Users whose calls were left over, since they had more than their share: the first few of them. */
    uint32_t held[CT_HELD_MAX];
    uint32_t held_count; /* beyond CT_HELD_MAX: it may be anybody's */
    /* Counts what found no room: of all users together, and of the first few of them. */
    struct ct_shortage is_short;
    struct {
        uint32_t uid;
        struct ct_shortage is_short;
    } short_users[CT_HELD_MAX];
    uint32_t short_count;
    uint64_t rows;                      /* stored */
    uint64_t flushed_ns;                /* all that returned before is stored; 0 when rows were left over */
    uint64_t looked_ns;                 /* all processes that were there then were in it */
    bool more;                          /* the batch was full: rows that could be stored were left */
    bool backlog;                       /* published calls wait, if only because they are too young */
    bool expiring;                      /* calls wait to be taken away */
    const char *go_on;                  /* why the trace is to go on in its next file; NULL: it need not */
    uint32_t fill;                      /* of the fullest ring when the batch began, in thousandths */
    char error[CT_STORE_MESSAGE_BYTES]; /* empty when it went well; the batch is undone otherwise */
    uint64_t waiting;                   /* calls in shared memory, where it did not go well */
    struct ct_process *gone;            /* ended or detached processes: no longer in the collection */

    char checkpoint_error[CT_CHECKPOINT_ERROR_BYTES]; /* why the log cannot be copied; empty where it can */

    /* Sums since the start. */
    uint64_t rows_total, late_total, batches_total, expired_total;
    uint32_t processes, lanes;

    /* As it is now. */
    uint32_t file;      /* number of the trace's file in use */
    uint64_t log_bytes; /* of its write-ahead log */
};

/* Notes that calls of that user were left over. */
void ct_report_hold(struct ct_report *report, uint32_t uid);
/* Whether calls of that user may have been left over. */
bool ct_report_holds(const struct ct_report *report, uint32_t uid);
/* Adds what the report of the batch before said, of which nobody has heard. */
void ct_report_add(struct ct_report *report, const struct ct_report *earlier);
/* Makes a batch and adds to *report, whose sums go on. */
void ct_batch_make(struct ct_collection *collection, const struct ct_request *request,
                   struct ct_report *report);
/* Behind a batch that says so: the trace goes on in its next file, or in the one it has. Nobody else may have
 * that one open in this process. */
void ct_batch_go_on(struct ct_collection *collection, const struct ct_report *report);

#endif
