/* A report on the results of a batch, written by the worker and read by the loop. */
#ifndef CT_BATCH_REPORT_H
#define CT_BATCH_REPORT_H

#include "message.h"
#include "user.h"

enum { CT_CHECKPOINT_ERROR_BYTES = 256, CT_BY_ROW_BYTES = 160, CT_HELD_MAX = 8 };

struct ct_report {
    /* The first few users whose calls were left over because the user exceeded a share. */
    uint32_t held[CT_HELD_MAX];
    uint32_t held_count; /* if this exceeds CT_HELD_MAX, any user may be held */
    /* Counts of everything that exceeded a share: for all users together, and for each of the first few
     * users. */
    struct ct_quota_report quota;
    struct {
        uint32_t uid;
        struct ct_quota_report quota;
    } short_users[CT_HELD_MAX];
    uint32_t short_count;
    uint64_t rows;                /* stored */
    uint64_t flushed_ns;          /* every call that returned by this time is stored; 0 if the batch failed */
    uint64_t looked_ns;           /* the batch included every process that existed at this time */
    bool more;                    /* the batch was full, and more rows can be stored */
    bool backlog;                 /* published calls are waiting, perhaps only because they are too recent */
    uint64_t expired;             /* rows removed */
    bool expiring;                /* more rows wait for removal */
    bool has_gone_on;             /* the trace then continued in its next file, or failed to do so */
    const char *go_on;            /* the reason for continuing the trace in its next file; NULL: none */
    uint64_t began_ns;            /* when the batch began, just before it read the rings' positions */
    uint32_t fill;                /* fill of the fullest ring at the start of the batch, in thousandths */
    char error[CT_MESSAGE_BYTES]; /* empty on success; if set, the batch was undone */
    uint64_t waiting;             /* calls not stored, if the batch failed */

    char by_row[CT_BY_ROW_BYTES]; /* why rows are stored one by one; empty if they are stored as pages */
    char checkpoint_error[CT_CHECKPOINT_ERROR_BYTES]; /* why the log cannot be copied; empty if it can */

    /* Totals since the start. */
    uint64_t rows_total, late_total, batches_total, expired_total;
    uint32_t processes, lanes, probed;

    /* The current state. */
    uint32_t file;      /* number of the trace's current file */
    uint64_t log_bytes; /* size of this file's write-ahead log */
};

/* Records that some of the user's calls were left over (`held`). */
void ct_report_hold(struct ct_report *report, uint32_t uid);
/* Returns whether some of the user's calls (or of any user's if `all` is set) may have been left over. */
bool ct_report_holds(const struct ct_report *report, uint32_t uid, bool all);
/* Adds the previous batch's undelivered report, except for the totals. */
void ct_report_add(struct ct_report *report, const struct ct_report *earlier);

#endif
