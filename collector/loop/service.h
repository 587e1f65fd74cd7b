/* The daemon: all parts on one loop, and when a batch is due. */
#ifndef CT_DAEMON_H
#define CT_DAEMON_H

#include "batch.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { CT_WORKERS_MAX = 2 };

struct ct_daemon_options {
    const char *database; /* absolute */
    const char *record;   /* absolute: what is told to the ledger goes there too; NULL for nowhere */
    const char *session;
    const char *shm_dir; /* absolute */
    uint64_t ring_bytes;
    struct ct_bounds bounds;
    unsigned workers;       /* threads that store, 1 to CT_WORKERS_MAX */
    int clock;              /* enum ct_clock_kind, or CT_CLOCK_CHOSEN for the one that the kernel trusts */
    bool foreground;        /* a service manager, if there is one, waits for this process */
    bool on_terminal;       /* a hang-up of the terminal is the end */
    gid_t readers;          /* a group that may read the database, or CT_NO_GROUP */
    bool system;            /* for the processes of all users; root alone may */
    bool leave_when_unused; /* goes when its last holder goes: started by `cudatrace run` */
};

/* Runs until it is stopped. `on_ready` is called once the session is served; before that, a return of 1 comes
 * with a sentence in `message`. The exit status. */
int ct_daemon_run(const struct ct_daemon_options *options, void (*on_ready)(void *data), void *data,
                  char message[CT_MESSAGE_BYTES]);

#endif
