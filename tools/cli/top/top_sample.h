/* Takes moments of a trace, which `cudatrace top` compares, and gets the rows of its views. Called by top.c
 * and top_screen.c. */
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
    int64_t process_id; /* the process that is shown, except in CT_TOP_PROCESSES */
    int64_t pid;        /* the pid of that process */
    const char *sort;   /* a column; NULL: the view's default; numbers descend, texts ascend */
    bool is_reversed;   /* in reverse order */
    bool all;           /* also show processes that have ended; always done for a trace that no daemon
                         * writes */
    char text[64];      /* a text that rows must contain; empty: any */

    bool lists_untraced; /* the view of processes includes rows of state "not traced", without numbers */

    sqlite3 *trace, *moments;
    struct ct_untraced untraced;
    long long probed; /* processes that a probe records, or 0 if that is not known */
    struct ct_series series;
    int daemon;             /* the socket of the daemon that writes the trace, or -1 if none does */
    bool is_live, was_live; /* is_live: in the last sample, a daemon reported that all calls are in the trace;
                             * was_live: in any earlier sample */
    const char *why;        /* why it is not live; NULL: no reason to report */
    char problem[512];      /* the last failure */
    uint32_t samples;       /* number of moments taken for this view */
    int64_t at_ns, last_ns; /* the moments that are compared; last_ns is 0 for the start of each process */
};

/* Returns false after reporting an error. */
bool ct_top_open(struct ct_top *top);
void ct_top_close(struct ct_top *top);
/* Opens the trace again if it continues in another file. Returns whether it did. */
bool ct_top_follow(struct ct_top *top);
/* Takes a moment, which is compared with the previous one. Returns false with the reason in top->problem. */
bool ct_top_sample(struct ct_top *top);
/* Selects another view or process, and discards the moments. */
void ct_top_look_at(struct ct_top *top, enum ct_top_view view, int64_t process_id, int64_t pid);
/* Returns the rows of the view, sorted; the caller finalizes the statement. Returns NULL with the reason in
 * top->problem. */
sqlite3_stmt *ct_top_rows(struct ct_top *top);
/* Returns the processes of this machine that are not traced, with pid and command, while the trace is live.
 * The caller finalizes the statement. Returns NULL with the reason in top->problem. */
sqlite3_stmt *ct_top_untraced(struct ct_top *top);

#endif
