/* Samples a trace for `cudatrace top`, and queries the rows of a view, which compares two samples. Called by
 * top.c and top_screen.c. */
#ifndef CT_TOP_SAMPLE_H
#define CT_TOP_SAMPLE_H

#include "session_choice.h"

#include "series.h"
#include "untraced.h"

enum ct_top_view { CT_TOP_PROCESSES, CT_TOP_FUNCTIONS, CT_TOP_THREADS, CT_TOP_VIEWS };

struct ct_top {
    struct ct_session_choice choice;
    double interval_s;
    enum ct_top_view view;
    int64_t process_id; /* the process shown, except in CT_TOP_PROCESSES */
    int64_t pid;        /* the pid of that process */
    const char *sort;   /* the column to sort by, numbers descending and text ascending; NULL: the view's
                         * default */
    bool is_reversed;   /* in reverse order */
    bool all;           /* also show processes that have exited, which is always done if no daemon writes the
                         * trace */
    char text[64];      /* text that rows must contain; empty: show all rows */

    bool lists_untraced; /* the view of processes includes rows with the state "not traced" and without
                          * numbers */

    bool hides_unused; /* the view of processes leaves out the columns about GPU work while no process in it
                        * has any */

    sqlite3 *trace, *moments;
    struct ct_untraced untraced;
    long long probed; /* number of processes that a probe records, or 0 if unknown */
    struct ct_series series;
    int daemon;             /* the socket of the daemon that writes the trace, or -1 if none does */
    bool is_live, was_live; /* is_live: when the last sample was taken, a daemon reported that all calls are
                             * in the trace; was_live: the same for any earlier sample */
    const char *why;        /* why the trace is not live; NULL: no reason to report */
    char problem[512];      /* the last failure */
    uint32_t samples;       /* number of samples taken for this view */
    int64_t at_ns, last_ns; /* the times of the samples being compared; last_ns is 0 for the start of each
                             * process */
};

/* Opens the trace. Returns false after reporting an error. */
bool ct_top_open(struct ct_top *top);
void ct_top_close(struct ct_top *top);
/* Reopens the trace if it continues in another file. Returns whether it was reopened. */
bool ct_top_follow(struct ct_top *top);
/* Takes a sample, to be compared with the previous one. On failure, returns false with the reason in
 * top->problem. */
bool ct_top_sample(struct ct_top *top);
/* Selects another view or process, and discards the samples. */
void ct_top_look_at(struct ct_top *top, enum ct_top_view view, int64_t process_id, int64_t pid);
/* Returns a statement for the view's rows, sorted, which the caller finalizes. On failure, returns NULL with
 * the reason in top->problem. */
sqlite3_stmt *ct_top_rows(struct ct_top *top);
/* Returns a statement for the pids and commands of this machine's untraced processes, if the trace is live.
 * The caller finalizes the statement. On failure, returns NULL with the reason in top->problem. */
sqlite3_stmt *ct_top_untraced(struct ct_top *top);
/* Returns a statement for the number of GPU errors (Xids) in the trace, and the last error. The statement has
 * no row if there was no error. The caller finalizes it. Returns NULL if an older version wrote the trace. */
sqlite3_stmt *ct_top_xids(struct ct_top *top);

/* Returns a statement for the latest sample of each GPU, which the caller finalizes. Returns NULL if the
 * trace is not live, or was written by a version that did not sample GPUs. */
sqlite3_stmt *ct_top_gpus(struct ct_top *top);

#endif
