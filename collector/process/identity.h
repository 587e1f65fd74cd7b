/* Says who a traced process is, whether it lives, and how it has ended; shm_process.h has what it records,
 * and where. */
#ifndef CT_IDENTITY_H
#define CT_IDENTITY_H

#include "user.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ct_process {
    int32_t pid;      /* as it knows itself */
    int32_t seen_pid; /* as it is seen from here; 0 when it is not */
    uint32_t uid;     /* by the kernel's word */
    uint64_t
        start_ticks;   /* field 22 of its /proc/PID/stat, 0 when unknown: with the pid, names the process */
    uint64_t image_ns; /* when its program was loaded: tells execs apart */
    int pidfd;         /* -1 when the process was gone already, or cannot be had */
    int32_t looked_up; /* the pid to look for in /proc where there can be no pidfd; otherwise 0 */
    _Atomic bool dead; /* set by whoever finds out first that it is */
    dev_t device;      /* device and inode of a file that is mapped while the program has its memory */
    ino_t inode;
    struct ct_user *user; /* in the system's session; otherwise NULL */
    void *follower;       /* followed.c's */
};

/* Follows it by a descriptor, or by its entry in /proc where the kernel has no pidfd_open (before Linux 5.3)
 * or a filter of system calls forbids it; one that is gone is dead. 0, or -errno for want of something that
 * may be had later. */
int ct_process_follow(struct ct_process *process);
/* Checks that a live process is its user's, or was when it began; root may have become anybody since. 0,
 * -EPERM when it is not, or -errno when that cannot be told. */
int ct_process_check_owner(const struct ct_process *process);
/* Returns whether process `pid` lives and is the one that started then. True where that cannot be told: the
 * caller will ask again. */
bool ct_process_lives(int32_t pid, uint64_t start_ticks);
/* Returns whether the process itself runs on, perhaps as another program. */
bool ct_process_runs(const struct ct_process *process);
/* Tells whether the program has the file mapped. Nothing else tells whose file it is. */
enum ct_process_hold { CT_HOLD_NO, CT_HOLD_YES, CT_HOLD_UNKNOWN };
enum ct_process_hold ct_process_hold(const struct ct_process *process);
void ct_process_let_go(struct ct_process *process);

/* Tells how a process has ended, as far as the kernel says so to a process that is not its parent. */
enum ct_ending { CT_ENDING_UNKNOWN, CT_ENDING_EXITED, CT_ENDING_KILLED };

/* Tells how a process has ended. It asks the zombie `pid`, 0 for none, that started at `start_ticks`, 0 for
 * unknown; then the descriptor, -1 for none, which tells since Linux 6.15 once the parent has asked. */
enum ct_ending ct_exit_status(int pidfd, int32_t pid, uint64_t start_ticks);

#endif
