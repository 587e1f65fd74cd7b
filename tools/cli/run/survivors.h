/* The processes of a command that outlive it. `run` sets a mark in the command's environment, and other
 * processes inherit it. A survivor has the mark and has loaded the hook; it may have made no call yet. Called
 * by run.c alone. */
#ifndef CT_SURVIVORS_H
#define CT_SURVIVORS_H

#include "where.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CT_RUN_ENV "CUDATRACE_RUN" /* the mark: another one for each run */

struct ct_mark {
    const struct ct_where *where; /* the session */
    char text[48];
    uint64_t start_ticks; /* of this process, and so before all that have the mark */
};

struct ct_survivor {
    pid_t pid;
    uint64_t start_ticks;
    int pidfd; /* -1 where there is none to be had */
};
struct ct_survivors {
    struct ct_survivor *survivor;
    size_t count;
};

/* `where` stays the caller's. */
void ct_mark_make(struct ct_mark *mark, const struct ct_where *where);
/* Finds those that live. Some end just after the command, and are not counted if they do so within a moment.
 */
void ct_survivors_find(struct ct_survivors *survivors, const struct ct_mark *mark);
void ct_survivors_free(struct ct_survivors *survivors);
/* Writes their numbers, separated by commas, as many as there is room for. */
void ct_survivors_name(const struct ct_survivors *survivors, char *text, size_t bytes);
/* Waits until all have ended, with those that they start, or until the daemon at the other end of `daemon`
 * has left. Leaves the terminal and closes the files of whoever started this process. */
void ct_survivors_await(const struct ct_mark *mark, int daemon);

#endif
