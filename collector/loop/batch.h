/* Making a batch: from all sources to one transaction. On the worker's thread, or on whatever thread has the
 * collection. */
#ifndef CT_BATCH_H
#define CT_BATCH_H

#include "source.h"

/* What bounds a trace; 0 for no bound. */
struct ct_bounds {
    uint64_t keep_ns;   /* calls that returned longer ago are taken away */
    uint64_t max_bytes; /* of all files of the trace: it goes on in numbered ones, the oldest of which go */
};

/* What one file of it may take; 0 for any. */
uint64_t ct_bounds_share(const struct ct_bounds *bounds);

/* What is collected from, and where to. `ledger`, whose store the caller has opened, `sources` and `bounds`
 * are the owner's to set; what follows starts as zero. */
struct ct_collection {
    struct ct_ledger ledger;
    struct ct_source *sources;
    struct ct_bounds bounds;
    uint64_t pruned_ns, go_on_after_ns; /* when files were looked through last; no next file before */
    bool next_file;                     /* was asked for, and not tried yet */
};

/* Makes a batch and adds to *report, whose sums go on. */
void ct_batch_make(struct ct_collection *collection, const struct ct_request *request,
                   struct ct_report *report);
/* Behind a batch that says so: the trace goes on in its next file, or in the one it has. Nobody else may have
 * that one open in this process. */
void ct_batch_go_on(struct ct_collection *collection, const struct ct_report *report);

#endif
