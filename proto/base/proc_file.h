/* Reads information about a process from /proc. Each function returns 0 on success, -ESRCH if there is no
 * such process, and another -errno if it is unknown whether the process exists. A process must not be taken
 * to have exited just because descriptors or memory have run out, or /proc is missing. */
#ifndef CT_PROC_FILE_H
#define CT_PROC_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* True if `error` (an -errno) indicates a shortage that may be temporary. */
bool ct_proc_is_short(int error);
/* Reads the beginning of /proc/PID/FILE as a string. */
int ct_proc_read(int32_t pid, const char *file, char *text, size_t bytes);

/* Fields of /proc/PID/stat. */
struct ct_proc_stat {
    uint64_t start_ticks;
    bool ended;        /* a zombie without running threads */
    bool first_ended;  /* the first thread has exited; other threads may be running */
    bool first_ending; /* the first thread has exited, is exiting, or is about to because of a signal */
    bool is_stopped;   /* the first thread was stopped by a signal, not by a debugger */
    int32_t exit_code; /* as returned by wait(); 0 if the reader lacks permission */
};
int ct_proc_stat(int32_t pid, struct ct_proc_stat *stat);

/* Fields of /proc/PID/status: the process's users, its group (which a program may change), its pid in its own
 * namespace (the last number in NSpid, since Linux 4.1), and the signals that the process and its first
 * thread have not taken yet. SIGKILL stays among these until the process has exited. */
struct ct_proc_status {
    uid_t real, effective, saved;
    gid_t group;       /* the effective one */
    int32_t inner_pid; /* 0 before Linux 4.1 */
    uint64_t pending;  /* bit N - 1 is set for signal N */
};
int ct_proc_status(int32_t pid, struct ct_proc_status *status);

#endif
