/* Making a batch: from all sources to one transaction. On the worker's thread, or on whatever thread has the
 * collection. */
#ifndef CT_BATCH_H
#define CT_BATCH_H

#include "source.h"

/* Bounds a trace; 0 for no bound. */
struct ct_bounds {
    uint64_t keep_ns;   /* calls that returned longer ago are taken away */
    uint64_t max_bytes; /* all files together: the trace goes on in numbered ones, of which the oldest go */
};

enum { CT_FILL_WANTED = 250 }; /* of the fullest ring, in thousandths: batches follow one another so */

/* Returns how many bytes one file of the trace may take; 0 for any number. */
uint64_t ct_bounds_share(const struct ct_bounds *bounds);

/* Holds what is collected from, and where to. The owner sets `ledger`, whose store it has opened, `sources`
 * and `bounds`, and later `checkpointer`; what follows starts as zero. */
struct ct_collection {
    struct ct_ledger ledger;
    struct ct_source *sources;
    struct ct_bounds bounds;
    struct ct_checkpointer *checkpointer; /* NULL: commits make checkpoints */
    uint64_t pruned_ns, go_on_after_ns;   /* when files were looked through last; no next file before */
    bool next_file;                       /* was asked for, and not tried yet */
    bool is_committing;                   /* a batch is being committed, and its report is */
    struct ct_report committing;
    struct ct_report *report; /* while a batch is made, its caller's */
    uint64_t rows_unexpired;  /* stored since calls were taken away last */
    uint64_t alone_ns;        /* when one was committed last that went alone */
};

/* Makes a batch and adds to *report, whose sums go on. False when it is being committed while the next one is
 * to be made, which the caller does at once: it is that one's report that tells of it. */
bool ct_batch_make(struct ct_collection *collection, const struct ct_request *request,
                   struct ct_report *report);
/* Says how the store is. No batch is being committed. */
void ct_batch_describe(struct ct_collection *collection, struct ct_report *report);
/* Behind a batch that says so: the trace goes on in its next file, or in the one it has. Nobody else may have
 * that one open in this process. */
void ct_batch_go_on(struct ct_collection *collection, const struct ct_report *report);

#endif
