/* Finds a command's survivors, the processes that outlive it. `run` sets a mark in the command's environment,
 * which child processes inherit. A survivor has the mark and, unless a probe records it, has loaded the hook,
 * but need not have made a call. Called only by run.c. */
#ifndef CT_SURVIVORS_H
#define CT_SURVIVORS_H

#include "session_choice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CT_RUN_ENV "CUDATRACE_RUN" /* the mark, which is unique to each run */

struct ct_mark {
    const struct ct_session_choice *choice; /* the session that records the command */
    char text[48];
    uint64_t start_ticks; /* start time of this process; processes with the mark have started later */
    bool is_probed;       /* survivors need not have loaded the hook */
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

/* Makes a mark that is unique to this run, of a command that is not probed. The caller still owns `choice`,
 * which must outlive the mark. */
void ct_mark_make(struct ct_mark *mark, const struct ct_session_choice *choice);
/* Finds the survivors. Processes that exit shortly after the command are not counted. */
void ct_survivors_find(struct ct_survivors *survivors, const struct ct_mark *mark);
void ct_survivors_free(struct ct_survivors *survivors);
/* Writes as many of the survivors' pids as fit, separated by commas. */
void ct_survivors_name(const struct ct_survivors *survivors, char *text, size_t bytes);
/* Waits until all survivors and the processes that they start have exited, or until the daemon connected to
 * `daemon` has exited. First detaches this process from its terminal and its standard descriptors. */
void ct_survivors_await(const struct ct_mark *mark, int daemon);

#endif
