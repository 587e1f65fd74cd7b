/* Identifies a traced process, and determines whether it is running and how it ended. For the data that it
 * records, see shm_process.h. */
#ifndef CT_IDENTITY_H
#define CT_IDENTITY_H

#include "user.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ct_process {
    int32_t pid;          /* in its own pid namespace */
    int32_t seen_pid;     /* in the daemon's pid namespace; 0 if not visible */
    uint32_t uid;         /* reported by the kernel */
    uint64_t start_ticks; /* field 22 of the process's /proc/PID/stat, 0 if unknown; identifies the process
                           * together with the pid */
    uint64_t exec_ns;     /* when the current program was loaded; distinguishes execs */
    int pidfd;            /* -1 if the process has ended, or if there is no pidfd */
    int32_t looked_up;    /* the pid to look up in /proc if there is no pidfd, else 0 */
    _Atomic bool dead;    /* set by the first thread that finds the process dead */
    dev_t device;         /* device and inode of a file that stays mapped until the program ends */
    ino_t inode;
    struct ct_user *user; /* NULL except in the system session */
    void *follower;       /* used by followed.c */
};

/* Opens a pidfd to follow a process. Before Linux 5.3, and if a system call filter forbids pidfd_open(), uses
 * the process's entry in /proc instead. Marks the process as dead if it has ended. Returns 0, or -errno for a
 * shortage that may be temporary. */
int ct_process_follow(struct ct_process *process);
/* Checks that `uid` is the real, effective or saved user of a process that ct_process_follow() has followed.
 * Succeeds if `uid` is root, because the process may have changed to another user, and if the process has
 * exited. Returns 0 on success, -EPERM if `uid` is none of these users, and otherwise another -errno. */
int ct_process_check_owner(const struct ct_process *process);
/* Returns whether process `pid` is running and started at `start_ticks`. Returns true if unknown, because the
 * caller will check again. */
bool ct_process_lives(int32_t pid, uint64_t start_ticks);
/* Returns whether the process is still running, possibly with a different program. */
bool ct_process_runs(const struct ct_process *process);
/* Reports whether the process has the file mapped, which is the only proof that the file belongs to the
 * process. */
enum ct_process_hold { CT_HOLD_NO, CT_HOLD_YES, CT_HOLD_UNKNOWN };
enum ct_process_hold ct_process_hold(const struct ct_process *process);
void ct_process_let_go(struct ct_process *process);

/* How a process ended, as far as the kernel reports that to processes other than the parent. */
enum ct_ending { CT_ENDING_UNKNOWN, CT_ENDING_EXITED, CT_ENDING_KILLED };

/* Reports how a process ended. First reads the exit status of the zombie `pid` (0: none), if it started at
 * `start_ticks` (0: unknown). If that fails, queries the pidfd (-1: none), which provides the exit status
 * since Linux 6.15, once the parent has waited for the process. */
enum ct_ending ct_exit_status(int pidfd, int32_t pid, uint64_t start_ticks);

#endif
