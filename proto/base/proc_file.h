/* Reads what /proc says of a process. Each question has three answers: 0, -ESRCH when there is no such
 * process, and another -errno when that cannot be told (no descriptor or no memory to read the file with, no
 * /proc): that must not be taken for an end. */
#ifndef CT_PROC_FILE_H
#define CT_PROC_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns whether an -errno is for want of something that may be had later. */
bool ct_proc_is_short(int error);
/* The beginning of /proc/PID/FILE, as text. */
int ct_proc_read(int32_t pid, const char *file, char *text, size_t bytes);

/* Holds what /proc/PID/stat says. */
struct ct_proc_stat {
    uint64_t start_ticks;
    bool ended;        /* a zombie, and none of its threads runs on */
    bool first_ended;  /* its first thread has: `ended`, or others are the process */
    bool is_stopped;   /* a signal has stopped its first thread; a debugger's stop does not count */
    int32_t exit_code; /* as wait() has it; 0 to those who may not look at the process */
};
int ct_proc_stat(int32_t pid, struct ct_proc_stat *stat);

/* Holds what /proc/PID/status says: the users that the process is, and its group, which a program may change,
 * and the last number of NSpid, which the process itself takes for its pid (Linux 4.1). */
struct ct_proc_status {
    uid_t real, effective, saved;
    gid_t group;       /* the effective one */
    int32_t inner_pid; /* 0 before Linux 4.1 */
};
int ct_proc_status(int32_t pid, struct ct_proc_status *status);

#endif
