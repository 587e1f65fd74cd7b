/* Makes batches. A batch is one transaction with the calls of all sources. The functions run on the worker
 * thread, or on any other thread that owns the collection. */
#ifndef CT_BATCH_H
#define CT_BATCH_H

#include "source.h"

/* The bounds of a trace; 0 means unbounded. */
struct ct_bounds {
    uint64_t keep_ns;   /* calls that returned longer ago than this are removed */
    uint64_t max_bytes; /* total size of all files. The trace continues in numbered files, and the oldest
                           are removed */
};

enum { CT_FILL_WANTED = 250 }; /* batches are timed so that the fullest ring is this full, in thousandths */

/* Returns the size of one file of the trace in bytes, or 0 if unbounded. A file that begins with more than
 * half of this may become larger. */
uint64_t ct_bounds_share(const struct ct_bounds *bounds);

/* The sources of calls and their destination. The owner sets `ledger`, with an open store, `sources`,
 * `bounds`, and later `checkpointer`. The remaining fields start as zero. */
struct ct_collection {
    struct ct_ledger ledger;
    struct ct_source *sources;
    struct ct_bounds bounds;
    struct ct_checkpointer *checkpointer; /* NULL: checkpoints happen in commits */
    uint64_t begun_bytes;               /* size of the current file when the trace continued in it, else 0 */
    uint64_t pruned_ns, go_on_after_ns; /* time of the last pruning; earliest time for the next file */
    bool next_file;                     /* the next file was requested but not yet attempted */
    bool is_committing;                 /* a batch is being committed; `committing` is its report */
    struct ct_report committing;
    struct ct_report *report; /* the caller's report while a batch is made */
    uint64_t rows_unexpired;  /* rows stored since old rows were last removed */
    uint64_t alone_ns;        /* time when a batch was last committed before the next one began */
};

/* Makes a batch, and adds its results to *report, including the totals. Returns false if the batch is still
 * being committed. The caller must then make the next batch at once, and that batch's report covers both
 * batches. */
bool ct_batch_make(struct ct_collection *collection, const struct ct_request *request,
                   struct ct_report *report);
/* Reports the state of the store. No commit may be in progress. */
void ct_batch_describe(struct ct_collection *collection, struct ct_report *report);
/* Call after a batch whose report sets `go_on`. Continues the trace in its next file, or in the current file
 * if there is an error. Nothing else in this process may have the current file open. */
void ct_batch_go_on(struct ct_collection *collection, const struct ct_report *report);

#endif
