/* A writer is a process that reads the channel of one probed process and writes a segment for it, as the hook
 * would.
 *
 * A writer has only the rights of the probed process's user, and closes all of the probe's descriptors except
 * for the ones that it needs. */
#ifndef CT_PROBE_WRITER_H
#define CT_PROBE_WRITER_H

#include "functions.h"
#include "hook_segment.h"
#include "program.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ct_writer_plan {
    pid_t pid; /* the probed process, */
    enum ct_maker maker;
    uid_t uid;                        /* its user */
    gid_t gid;                        /* and its group */
    const struct ct_program *program; /* its program, */
    uint64_t exec_ns;                 /* and when the program began */
    uint64_t since_ns;                /* recorded calls returned after this moment */
    uint64_t absent_ns;               /* calls from this moment on were not recorded; 0: there were none */
    uint32_t flags;                   /* of the segment when the process has ended (enum ct_segment_flags) */
    /* Descriptors, which the writer owns. */
    int pidfd; /* of the process; -1: its program has ended */
    int ring, threads,
        lost;              /* of its channel; -1 if there is none, which only the arrivals writer may lack */
    int notices;           /* the map of notices, for the arrivals writer; otherwise -1 */
    int link;              /* to the probe (writer_link.h) */
    uint8_t *arriving;     /* cleared when the process has a segment, or there is no daemon; may be NULL */
    uint32_t *in_flight;   /* of the channel (functions.h); NULL if there is none */
    const uint8_t *copied; /* of the channel (functions.h); NULL if there is none */
    const uint32_t *end;   /* how the channel's process has ended (CT_PROBE_ENDED); NULL if there is none */
    struct ct_hook_segment *hook; /* of the hook that has visited the process */
    struct ct_function_table *functions;
    uint64_t entry_ns, return_ns; /* parts of a call's duration that the probe itself takes, at both ends */
};

/* The arrivals writer writes a segment for the probe itself. That segment is complete up to the latest time
 * when every process that had made a call also had a segment. The daemon waits for the probe's segment, so
 * the first calls of a process do not arrive late.
 *
 * The probe's segment contains no calls. It contains the events of the whole machine (CT_SCOPE_MACHINE), if
 * there is a channel for them. These events happen in any thread, but all are written to a single lane, so
 * the number of threads does not matter. */

/* Writes until the process or the probe has ended, and returns an exit status. Must be called in a separate
 * process with a single thread. */
int ct_writer_run(const struct ct_writer_plan *plan);

#endif
