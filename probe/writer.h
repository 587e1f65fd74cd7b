/* A writer: the process that reads the channel of one probed process and writes its segment, as the hook
 * would.
 *
 * It has the rights of that process's user and no more. It closes the probe's descriptors, except those of
 * its channel. */
#ifndef CT_PROBE_WRITER_H
#define CT_PROBE_WRITER_H

#include "functions.h"
#include "hook_segment.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ct_writer_plan {
    pid_t pid;            /* the probed process, */
    uid_t uid;            /* its user */
    gid_t gid;            /* and its group */
    uint64_t start_ticks; /* field 22 of its /proc/PID/stat */
    uint64_t exec_ns;     /* when its program began */
    const char *name;     /* replaces the command line of a process that has ended; may be NULL */
    uint64_t since_ns;    /* recorded calls returned after this moment */
    uint64_t absent_ns;   /* calls from this moment on were not recorded; 0: there were none */
    /* Descriptors, which the writer owns. */
    int pidfd;               /* of the process; -1: it has ended */
    int ring, threads, lost; /* of its channel; -1 for the arrivals writer */
    int notices;             /* the map of notices, for the arrivals writer only */
    int parent; /* a pipe. A byte CT_WRITER_EXEC, or the end of the file: no more records will follow */
    int ready;  /* a pipe that gets a byte when the process has a segment, or there is no daemon; -1: none */
    uint8_t *arriving;            /* cleared at that moment; may be NULL */
    uint32_t *in_flight;          /* of the channel (functions.h); NULL for the arrivals writer */
    struct ct_hook_segment *hook; /* of the hook that has visited the process */
    struct ct_function_table *functions;
    uint64_t entry_ns, return_ns; /* parts of a call's duration that the probe itself takes, at both ends */
};

/* In the pipe from the parent: the process has executed another program. */
enum { CT_WRITER_EXEC = 'e' };

/* The arrivals writer writes a segment for the probe itself, which contains no calls. That segment is
 * complete up to the moment when every process that has made a call had a segment. The daemon waits for it,
 * so the first calls of a process are not late. */

/* Writes until the process or the parent has ended, and returns an exit status. Call it in a separate process
 * with one thread. */
int ct_writer_run(const struct ct_writer_plan *plan);

#endif
