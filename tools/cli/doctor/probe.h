/* Starts a command under the hook and watches its processes with ptrace. Tracing shows which libraries each
 * process has loaded by the time it exits, however short-lived it is. The processes' output is discarded. All
 * processes are ended once one of them has joined the session, or when this process exits. Called only by
 * doctor_command.c. */
#ifndef CT_PROBE_H
#define CT_PROBE_H

#include "hindrance.h"
#include "session_choice.h"

#include <sys/types.h>

struct ct_probed {
    pid_t pid;
    int32_t own_pid; /* the pid in the process's own PID namespace */
    bool has_ended, has_hook, has_driver;
    bool has_own_shm; /* it sees a different session folder from ours */
    bool is_filtered; /* seccomp filters its system calls */
    bool is_asked;    /* its LD_PRELOAD names the hook */
    char program[256];
    char hindrance[CT_HINDRANCE_BYTES]; /* what prevents the hook from recording; empty if nothing does */
};

enum ct_probe_end { CT_PROBE_ENDED, /* all have exited on their own */ CT_PROBE_JOINED, CT_PROBE_LATE };

struct ct_probe {
    struct ct_probed *process;
    size_t count, room;
    int start_error; /* errno if the command could not be run; 0 if it was run */
    int watch_error; /* errno if ptrace() failed, in which case `process` is empty */
    int wait_status; /* wait status of the command, if it has exited on its own */
    int signalled;   /* a signal, still blocked, that must end this process; 0: none */
    enum ct_probe_end end;
};

/* Runs the command for at most `patience_ns`. The caller has started a daemon for the session in `choice`. */
void ct_probe_run(struct ct_probe *probe, char **argv, const char *hook,
                  const struct ct_session_choice *choice, uint64_t patience_ns);
void ct_probe_free(struct ct_probe *probe);

#endif
