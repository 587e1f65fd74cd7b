/* Starts a command under the hook and watches its processes by ptrace: what each has loaded when it ends,
 * however short it is. Their output is discarded. They are ended once one of them has joined the session, and
 * they end with this process. Called by doctor_command.c alone. */
#ifndef CT_PROBE_H
#define CT_PROBE_H

#include "where.h"

#include <stdint.h>
#include <sys/types.h>

struct ct_probed {
    pid_t pid;
    int32_t own_pid; /* in its own namespace */
    bool has_ended, has_hook, has_driver;
    bool has_own_shm; /* the session's folder is not the one that is seen from here */
    bool is_filtered; /* by seccomp */
    bool is_asked;    /* its LD_PRELOAD names the hook */
    char program[256];
};

enum ct_probe_end { CT_PROBE_ENDED, /* all by themselves */ CT_PROBE_JOINED, CT_PROBE_LATE };

struct ct_probe {
    struct ct_probed *process;
    size_t count, room;
    int start_error; /* errno of what kept the command from being run, 0: nothing */
    int watch_error; /* the same of ptrace: `process` is empty */
    int wait_status; /* of the command, where it has ended by itself */
    int signalled;   /* a signal that is to end this process, 0: none; it stays blocked */
    enum ct_probe_end end;
};

/* `where` is the session, which a daemon serves. Ends the command after `patience_ns`. */
void ct_probe_run(struct ct_probe *probe, char **argv, const char *hook, const struct ct_where *where,
                  uint64_t patience_ns);
void ct_probe_free(struct ct_probe *probe);

#endif
