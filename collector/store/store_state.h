/* The store's state, shared only by the store's own files. */
#ifndef CT_STORE_STATE_H
#define CT_STORE_STATE_H

#include "background_task.h"
#include "database.h"
#include "earlier_files.h"
#include "intern.h"
#include "interner.h"
#include "message.h"
#include "page_builder.h"
#include "page_cache.h"
#include "row_table.h"
#include "store_names.h"

#include <stdatomic.h>

/* A call that freed memory whose allocation is unknown. Holds the values listed at CT_FREE_VALUES. */
struct ct_unmatched_free {
    int64_t value[CT_FREE_VALUES];
    char kind[16];
};
enum { CT_UNMATCHED_FREES = 256 };

/* The state of the rows being stored (stored_calls.c). */
struct ct_stored_calls {
    uint64_t ordered_ns;   /* calls that returned before this time are late */
    uint64_t last_id;      /* call_id of the last row in order */
    struct ct_intern late; /* call_ids of the late rows of this batch */
    uint64_t late_tries;   /* number of attempts to find ids for late rows in this batch */
    uint64_t late_rows;
};

/* Deferred statements, packed one after another. Each is a struct deferred, followed by its values and its
 * string. */
struct ct_deferred {
    uint8_t *bytes;
    size_t used, room;
};

/* The page loader (page_loader.c). */
struct ct_page_loader {
    bool is_possible;               /* this connection can load pages */
    int64_t schema;                 /* version of the schema last checked */
    char why[160];                  /* why rows are stored one by one; "" if they are stored as pages */
    struct ct_page_builder builder; /* of this transaction */
    struct ct_page_list places;     /* addresses of these pages in SQLite's cache */
    struct ct_page_list watched;
    uint64_t rows; /* rows loaded since the store was opened, including rows later rolled back */
};

/* A stream's newest returned work in this batch (returned_work.c). The context and the stream are identified
 * as in CUPTI. */
struct ct_returned_stream {
    int64_t process_id; /* 0: unused */
    int64_t context, stream;
    int64_t correlation; /* of the work's call */
    int64_t ended_ns;    /* the latest end of its work */
};
enum { CT_RETURNED_STREAMS = 64 };

/* The store belongs to the thread that makes batches. During a commit, the committer owns the connection, the
 * statements, the page loader, everything named committing, `unmatched` and `error`. */
struct ct_store {
    struct ct_task *committer; /* NULL: no committer */
    bool is_committing;        /* a batch was handed to the committer, and has not been waited for */
    bool has_failed;           /* the batch that was handed over could not be committed */
    bool begin_is_due;         /* the batch being made has no transaction yet */
    void (*on_committed)(void *data);
    void *on_committed_data;
    struct ct_bulk_table bulk[CT_BULK_COUNT];
    struct ct_page_loader loader;
    struct ct_database database;
    struct ct_earlier_files earlier;
    uint32_t log_pages; /* length of the write-ahead log, if checkpoints are left to the caller */
    bool log_is_held;
    bool checkpoint_failed;
    char checkpoint_error[512];
    sqlite3_stmt *statement[CT_SQL_COUNT];
    uint32_t generation;
    _Atomic int64_t run_unix_ns; /* when the current run began; any thread may begin another */

    struct ct_intern numbers[CT_NUMBER_TEXT];
    struct ct_interner texts;
    int64_t next_thread_id, next_run_id;
    int64_t numbers_from[CT_NUMBERS]; /* the lowest numbers that calls after `numbered_ns` refer to */
    uint64_t numbered_ns, swept_ns;
    uint32_t numbering;   /* counts how often the numbers became invalid */
    bool numbers_unknown; /* the database's numbers could not be read; no batch begins until they are */

    struct ct_deferred deferred,
        deferred_committing; /* of the batch being made; of the batch being committed */
    bool out_of_memory;
    bool broken_off;
    uint64_t effort; /* cost since the store was opened, in rows of plain calls */

    struct ct_returned_stream returned[CT_RETURNED_STREAMS];
    struct ct_stored_calls calls;
    struct ct_unmatched_free unmatched[CT_UNMATCHED_FREES]; /* the most recent; unused if process_id is 0 */
    uint64_t unmatched_count;

    struct ct_demangled *demangled;
    char error[CT_MESSAGE_BYTES];
};

#endif
