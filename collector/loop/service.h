/* Runs the daemon: connects its parts in one event loop, and decides when a batch is due. */
#ifndef CT_DAEMON_H
#define CT_DAEMON_H

#include "batch.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { CT_WORKERS_MAX = 2 };

struct ct_daemon_options {
    const char *database; /* absolute */
    const char *record;   /* absolute path for a recording of the ledger's input; NULL: no recording */
    const char *session;
    const char *shm_dir; /* absolute */
    uint64_t ring_bytes;
    uint64_t gpu_interval_ns; /* between two samples of each GPU; 0: no samples */
    struct ct_bounds bounds;
    unsigned workers;       /* number of threads that store, 1 to CT_WORKERS_MAX */
    int clock;              /* enum ct_clock_kind, or CT_CLOCK_CHOSEN for the clock that the kernel trusts */
    int starter;            /* a pipe that the process waiting for on_ready() reads; -1: no such process */
    bool foreground;        /* a service manager may be waiting for this process */
    bool on_terminal;       /* a hang-up of the terminal stops the daemon */
    gid_t readers;          /* a group that may read the database, or CT_NO_GROUP */
    bool system;            /* serves the processes of all users; only for root */
    bool leave_when_unused; /* exits after its last holder does; set by `cudatrace run` */
};

/* Runs the daemon until it is stopped, and returns the exit status. Calls `on_ready` once the session is
 * served. If the daemon fails to start, returns 1 with a sentence in `message`. */
int ct_daemon_run(const struct ct_daemon_options *options, void (*on_ready)(void *data), void *data,
                  char message[CT_MESSAGE_BYTES]);

#endif
