/* The processes of a command that outlive it. `run` sets a mark in the command's environment, and other
 * processes inherit it. A survivor has the mark and has loaded the hook. It need not have made a call. Called
 * only by run.c. */
#ifndef CT_SURVIVORS_H
#define CT_SURVIVORS_H

#include "session_choice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CT_RUN_ENV "CUDATRACE_RUN" /* the mark, different for each run */

struct ct_mark {
    const struct ct_session_choice *choice; /* the session that the command uses */
    char text[48];
    uint64_t start_ticks; /* start time of this process, so not later than that of a process with the mark */
};

struct ct_survivor {
    pid_t pid;
    uint64_t start_ticks;
    int pidfd; /* -1 if there is none */
};
struct ct_survivors {
    struct ct_survivor *survivor;
    size_t count;
};

/* The caller keeps `choice`. */
void ct_mark_make(struct ct_mark *mark, const struct ct_session_choice *choice);
/* Finds the survivors. A process that ends within a moment after the command is not counted. */
void ct_survivors_find(struct ct_survivors *survivors, const struct ct_mark *mark);
void ct_survivors_free(struct ct_survivors *survivors);
/* Writes their pids, separated by commas, as many as fit. */
void ct_survivors_name(const struct ct_survivors *survivors, char *text, size_t bytes);
/* Waits until all survivors and the processes that they start have ended, or until the daemon at the other
 * end of `daemon` has exited. Leaves the terminal and the standard files of the process that started this
 * one. */
void ct_survivors_await(const struct ct_mark *mark, int daemon);

#endif
