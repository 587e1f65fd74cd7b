/* A source: whatever yields calls. The life of one, batch after batch; a batch knows no other way to it. */
#ifndef CT_SOURCE_H
#define CT_SOURCE_H

#include "batch_report.h"
#include "ledger.h"

/* Says what a batch is asked for; several requests for one batch are one. */
struct ct_request {
    bool snapshot_open; /* open calls are to be saved */
    bool next_file;     /* the trace is to go on in its next file */
    bool detach;        /* traced processes are to let go of what they record to */
    bool let_go;        /* they are to let go of what there is now, and make others */
    bool alone;         /* it is to be committed before there is another one */
    uint64_t flush_ns;  /* all that returned up to then must be in it; 0: no such moment */
};

struct ct_batch {
    struct ct_ledger *ledger;
    struct ct_report *report;
    uint64_t now_ns;
    uint64_t until_ns;  /* calls that returned at or before it are taken */
    uint64_t rows_max;  /* calls that it may have */
    bool snapshot_open; /* open calls are to be saved */
    bool is_alone;      /* the next one is not to begin before it is committed */
};

struct ct_source {
    const struct ct_source_class *class;
    struct ct_source *next;
};

/* Each batch calls these, in this order; `start` comes before the first batch, since it may take its time.
 * `start` and `wake` are NULL for nothing. Functions that return int return 0, or -1 when the store has
 * failed and said why: then the batch is undone. */
struct ct_source_class {
    void (*start)(struct ct_source *source);
    /* A batch is about to begin: it may have to wait for the database yet. */
    void (*wake)(struct ct_source *source, const struct ct_request *request, struct ct_report *report);
    /* It has begun: the ledger is told of processes that are new. */
    int (*begin)(struct ct_source *source, struct ct_batch *batch);
    /* Lowers batch->until_ns to what no call of the source that is still to come returned before. Waits are
     * bounded. */
    void (*watermark)(struct ct_source *source, struct ct_batch *batch);
    /* Adds what yields calls to the ledger's merge. */
    int (*streams)(struct ct_source *source, struct ct_batch *batch);
    /* The calls are taken: how far they were, and what else there is to know. */
    int (*save)(struct ct_source *source, struct ct_batch *batch);
    /* It is committed: what was taken need not be kept. Where it is not alone the next one may have been made
     * as far as to its calls. */
    void (*publish)(struct ct_source *source, struct ct_batch *batch);
    /* Instead: it was taken back, with the one before it that was not published, or numbers of the store are
     * void; calls begin again behind the last commit. */
    void (*revert)(struct ct_source *source);
    /* Until the next one: adds to the report what waits, and who there is. */
    void (*rest)(struct ct_source *source, struct ct_report *report);
};

/* A kind of source that is read from files, and not from what happens: the daemon's option --NAME FILE…
 * stores them, and ends. */
struct ct_file_source {
    const char *name;
    const char *help; /* lines of --help */
    /* 0, or -1 with a sentence. Whatever was opened is to be closed. */
    int (*open)(const char *path, struct ct_source **source, char message[CT_MESSAGE_BYTES]);
    /* Returns where the file was recorded. */
    const struct ct_origin *(*origin)(const struct ct_source *source);
    /* Returns whether two files that were just opened begin with the same calls: they would be stored twice.
     */
    bool (*is_same)(const struct ct_source *a, const struct ct_source *b);
    /* Returns why the source ended before its end, a sentence; NULL when it did not. */
    const char *(*problem)(const struct ct_source *source);
    void (*close)(struct ct_source *source);
};

#endif
