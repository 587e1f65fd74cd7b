/* Reports what a batch brought: the worker writes it, the loop reads it. */
#ifndef CT_BATCH_REPORT_H
#define CT_BATCH_REPORT_H

#include "message.h"
#include "user.h"

enum { CT_CHECKPOINT_ERROR_BYTES = 256, CT_BY_ROW_BYTES = 160, CT_HELD_MAX = 8 };

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
    uint64_t rows;                /* stored */
    uint64_t flushed_ns;          /* all that returned up to then is stored; 0 when the batch failed */
    uint64_t looked_ns;           /* all processes that were there then were in it */
    bool more;                    /* the batch was full: rows that could be stored were left */
    bool backlog;                 /* published calls wait, if only because they are too young */
    uint64_t expired;             /* taken away */
    bool expiring;                /* calls wait to be */
    bool has_gone_on;             /* behind the batch: in the next file, or it could not */
    const char *go_on;            /* why the trace is to go on in its next file; NULL: it need not */
    uint64_t began_ns;            /* when it looked at the rings */
    uint32_t fill;                /* how full the fullest ring was when the batch began, in thousandths */
    char error[CT_MESSAGE_BYTES]; /* empty when it went well; the batch is undone otherwise */
    uint64_t waiting;             /* calls that were not stored, where it did not go well */

    char by_row[CT_BY_ROW_BYTES]; /* why rows are stored one by one; empty where they are not */
    char checkpoint_error[CT_CHECKPOINT_ERROR_BYTES]; /* why the log cannot be copied; empty where it can */

    /* Sums since the start. */
    uint64_t rows_total, late_total, batches_total, expired_total;
    uint32_t processes, lanes;

    /* As it is now. */
    uint32_t file;      /* number of the trace's file in use */
    uint64_t log_bytes; /* length of its write-ahead log */
};

/* Notes that calls of that user were left over. */
void ct_report_hold(struct ct_report *report, uint32_t uid);
/* Returns whether calls of that user may have been left over. */
bool ct_report_holds(const struct ct_report *report, uint32_t uid);
/* Adds what the report of the batch before said, of which nobody has heard; but for the sums. */
void ct_report_add(struct ct_report *report, const struct ct_report *earlier);

#endif
