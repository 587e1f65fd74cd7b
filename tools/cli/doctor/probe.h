/* Starts a command under the hook and watches its processes by ptrace. That shows which libraries each
 * process has loaded when it ends, however short-lived it is. The output of the processes is discarded. They
 * are ended once one of them has joined the session, or when this process ends. Called only by
 * doctor_command.c. */
#ifndef CT_PROBE_H
#define CT_PROBE_H

#include "session_choice.h"

#include <stdint.h>
#include <sys/types.h>

struct ct_probed {
    pid_t pid;
    int32_t own_pid; /* the pid in the process's own namespace */
    bool has_ended, has_hook, has_driver;
    bool has_own_shm; /* its session folder is not the one seen from here */
    bool is_filtered; /* seccomp filters its system calls */
    bool is_asked;    /* its LD_PRELOAD names the hook */
    char program[256];
};

enum ct_probe_end { CT_PROBE_ENDED, /* all have ended on their own */ CT_PROBE_JOINED, CT_PROBE_LATE };

struct ct_probe {
    struct ct_probed *process;
    size_t count, room;
    int start_error; /* errno if the command could not be run; 0: it was run */
    int watch_error; /* errno of a failed ptrace; `process` is then empty */
    int wait_status; /* wait status of the command, if it has ended on its own */
    int signalled;   /* a signal that must end this process, 0: none; it stays blocked */
    enum ct_probe_end end;
};

/* Runs the command for at most `patience_ns`. A daemon serves the session in `choice`. */
void ct_probe_run(struct ct_probe *probe, char **argv, const char *hook,
                  const struct ct_session_choice *choice, uint64_t patience_ns);
void ct_probe_free(struct ct_probe *probe);

#endif
