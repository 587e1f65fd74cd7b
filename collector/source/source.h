/* A source is anything that provides calls. A batch uses a source only through the functions of struct
 * ct_source_class. */
#ifndef CT_SOURCE_H
#define CT_SOURCE_H

#include "batch_report.h"
#include "ledger.h"

/* Describes a requested batch. Several requests can be combined into one batch. */
struct ct_request {
    bool snapshot_open; /* save the open calls */
    bool next_file;     /* continue the trace in its next file */
    bool detach;        /* traced processes must detach from their segments */
    bool let_go;        /* traced processes must detach from their current segments and create new ones */
    bool alone;         /* commit this batch before the next one begins */
    uint64_t flush_ns;  /* the batch must include every call that returned up to this time; 0: no flush */
};

struct ct_batch {
    struct ct_ledger *ledger;
    struct ct_report *report;
    uint64_t now_ns;
    uint64_t until_ns;  /* calls that returned at or before this time are taken */
    uint64_t rows_max;  /* maximum number of calls */
    bool snapshot_open; /* save the open calls */
    bool is_alone;      /* the next batch must not begin before this batch is committed */
};

struct ct_source {
    const struct ct_source_class *class;
    struct ct_source *next;
};

/* `start` is called once before the first batch, and may take a while. Each batch calls the other functions
 * in the order of their declarations. `start` and `wake` may be NULL. Functions that return int return 0, or
 * -1 with the error set in the store. After an error, the batch is undone. */
struct ct_source_class {
    void (*start)(struct ct_source *source);
    /* Called when a batch is about to begin. The batch may still have to wait for the database. */
    void (*wake)(struct ct_source *source, const struct ct_request *request, struct ct_report *report);
    /* Called when the batch has begun. Registers new processes with the ledger. */
    int (*begin)(struct ct_source *source, struct ct_batch *batch);
    /* Lowers batch->until_ns so that no call provided later can have returned before it. Waits only for a
     * bounded time. */
    void (*watermark)(struct ct_source *source, struct ct_batch *batch);
    /* Adds the streams of calls to the ledger's merge. */
    int (*streams)(struct ct_source *source, struct ct_batch *batch);
    /* Called when the calls have been taken. Saves positions and all other facts. */
    int (*save)(struct ct_source *source, struct ct_batch *batch);
    /* Called when the batch is committed, so the source need not keep the taken calls. Unless `is_alone` is
     * set, the next batch may already be taking calls. */
    void (*publish)(struct ct_source *source, struct ct_batch *batch);
    /* Called instead of `publish` if the batch was rolled back, or if the store's IDs are no longer valid. A
     * previous batch that was not published is also rolled back. The source must provide all calls since the
     * last commit again. */
    void (*revert)(struct ct_source *source);
    /* Called when the batch is over. Adds the waiting calls, the processes and the threads to the report. */
    void (*rest)(struct ct_source *source, struct ct_report *report);
};

/* A kind of source that reads files instead of live events. With the option --NAME FILE…, the daemon stores
 * these files and exits. */
struct ct_file_source {
    const char *name;
    const char *help; /* lines of --help */
    /* Returns 0, or -1 with a sentence in `message`. The caller must close every source that was opened. */
    int (*open)(const char *path, struct ct_source **source, char message[CT_MESSAGE_BYTES]);
    /* Returns the origin of the recorded file. */
    const struct ct_origin *(*origin)(const struct ct_source *source);
    /* Returns whether two newly opened files begin with the same calls, which would then be stored twice. */
    bool (*is_same)(const struct ct_source *a, const struct ct_source *b);
    /* Writes a sentence about what could not be stored, by number from 0 on. Returns false if there are no
     * more sentences. */
    bool (*problem)(const struct ct_source *source, size_t number, char message[CT_MESSAGE_BYTES]);
    void (*close)(struct ct_source *source);
};

#endif
