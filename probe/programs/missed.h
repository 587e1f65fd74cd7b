/* The processes that the probe cannot record or accompany. Prints a line for each, and reports them to the
 * daemons, whose traces list them in the view `unrecorded` (unrecorded_report.h). */
#ifndef CT_PROBE_MISSED_H
#define CT_PROBE_MISSED_H

#include "unrecorded_report.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How many reports wait until a daemon takes them, and how many of one user do. */
enum { CT_MISSED_REPORTS = 8192, CT_MISSED_OF_USER = CT_MISSED_REPORTS / 4 };

struct ct_missed_report {
    struct ct_unrecorded_report report;
    uint64_t since_ns; /* of the first attempt to send it; 0: there was none */
};

struct ct_missed {
    const char *session, *dir; /* the caller sets these */
    struct ct_missed_report *waiting;
    size_t count, room;
    struct {
        pid_t pid;
        uint64_t program;
    } recent[256];       /* by pid, those that were reported last */
    uint64_t printed_ns; /* when the current second of messages began */
    uint32_t printed, unprinted, unlisted;
};

struct ct_missed_process {
    pid_t pid;
    uid_t uid;
    uint64_t program; /* distinguishes the programs that have the same pid */
    const char *name; /* of its first thread */
    int error;        /* -errno. -EDQUOT: its user has a share of the channels; -ENOSPC: no channel is free */
    bool is_companion;
};

/* Prints and reports a process. Does nothing if the process was the last one with its pid. */
void ct_missed_add(struct ct_missed *missed, const struct ct_missed_process *process);
/* The same for processes about which nothing is known. */
void ct_missed_add_unlisted(struct ct_missed *missed, uint32_t count);
/* Sends the reports that the daemons take now. Returns whether others wait. A report that no daemon takes
 * within ten seconds, or for which there is no daemon, is dropped. */
bool ct_missed_send(struct ct_missed *missed);
/* Sends the last reports, for a second at most. */
void ct_missed_finish(struct ct_missed *missed);

#endif
