/* Shows on a terminal how far long work is. */
#ifndef CT_PROGRESS_H
#define CT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The line is shown from two seconds after the beginning on, at most five times a second. */
struct ct_progress {
    FILE *to;                   /* NULL: nothing is shown */
    const char *command;        /* begins the line */
    int64_t begun_ns, shown_ns; /* CLOCK_MONOTONIC. shown_ns: when the line was shown last */
    bool is_shown;
};

/* Begins work that is shown on standard error, if that is a terminal. */
struct ct_progress ct_progress_begin(const char *command, int64_t now_ns);
/* Returns whether the line should be shown at this time. */
bool ct_progress_is_due(const struct ct_progress *progress, int64_t now_ns);
/* Shows the line, or replaces it. The text follows the command's name. */
void ct_progress_show(struct ct_progress *progress, int64_t now_ns, const char *text);
/* Removes the line, before other output and at the end. */
void ct_progress_clear(struct ct_progress *progress);

#endif
