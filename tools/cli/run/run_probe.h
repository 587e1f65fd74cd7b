/* The probe that `cudatrace run` starts. It records events inside the calls of the command's processes, or
 * also their calls if the library is not preloaded (--probe). */
#ifndef CT_RUN_PROBE_H
#define CT_RUN_PROBE_H

#include "probe_options.h"
#include "session_choice.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct ct_run_probe {
    char path[PATH_MAX]; /* empty: no events are wanted */
    pid_t pid;           /* 0: none */
};

/* Finds the probe if the options ask for events, or for the calls of the processes that `children` starts.
 * Returns false after reporting that it is missing. */
bool ct_run_probe_find(struct ct_run_probe *probe, const struct ct_probe_options *events);
/* Starts the probe that has been found, if any, and waits until it records. The probe ends when this process
 * ends. Returns false after an error has been reported. */
bool ct_run_probe_start(struct ct_run_probe *probe, const struct ct_probe_options *events,
                        const struct ct_session_choice *choice);
/* Ends the probe if there is one, and waits until its events are in shared memory. */
void ct_run_probe_end(struct ct_run_probe *probe);

#endif
