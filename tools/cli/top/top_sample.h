/* Takes the moments of a trace that `cudatrace top` compares, and the rows of its views. Called by top.c and
 * top_screen.c. */
#ifndef CT_TOP_SAMPLE_H
#define CT_TOP_SAMPLE_H

#include "where.h"

#include "series.h"
#include "untraced.h"

enum ct_top_view { CT_TOP_PROCESSES, CT_TOP_FUNCTIONS, CT_TOP_THREADS, CT_TOP_VIEWS };

struct ct_top {
    struct ct_where where;
    double interval_s;
    enum ct_top_view view;
    int64_t process_id; /* the process that the views but CT_TOP_PROCESSES are about */
    int64_t pid;        /* its pid */
    const char *sort;   /* a column; NULL: the view's own. Numbers from the most, texts from the first */
    bool is_reversed;   /* the other way */
    bool all;           /* processes that have ended, too, which all are in a trace that nobody writes */
    char text[64];      /* a text that rows must contain; empty: any */

    bool lists_untraced; /* among the processes: rows of state "not traced", without numbers */

    sqlite3 *trace, *moments;
    struct ct_untraced untraced;
    struct ct_series series;
    int daemon;             /* its socket, -1 when none writes the trace */
    bool is_live, was_live; /* a daemon said that all is in the trace: now, ever */
    const char *why;        /* why not; NULL where there is nothing to say */
    char problem[512];      /* the last failure */
    uint32_t samples;       /* moments taken for this view */
    int64_t at_ns, last_ns; /* the moments that are compared; last_ns is 0 for the start of each process */
};

/* False after reporting. */
bool ct_top_open(struct ct_top *top);
void ct_top_close(struct ct_top *top);
/* Opens the trace again when it goes on in another file; whether it did. */
bool ct_top_follow(struct ct_top *top);
/* Takes a moment, which is compared with the one before. top->problem says why it could not. */
bool ct_top_sample(struct ct_top *top);
/* Forgets the moments: another view, another process. */
void ct_top_look_at(struct ct_top *top, enum ct_top_view view, int64_t process_id, int64_t pid);
/* The rows of the view, sorted; the caller finalizes it. NULL, and top->problem says why. */
sqlite3_stmt *ct_top_rows(struct ct_top *top);
/* The processes of this machine that are not traced, with pid and command, while the trace is live; the
 * caller finalizes it. NULL, and top->problem says why. */
sqlite3_stmt *ct_top_untraced(struct ct_top *top);

#endif
