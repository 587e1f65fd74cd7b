#include "identity.h"

#include "proc_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

bool ct_process_lives(int32_t pid, uint64_t start_ticks)
{
    struct ct_proc_stat stat;
    const int error = ct_proc_stat(pid, &stat);
    return error ? error != -ESRCH : !stat.ended && (start_ticks == 0 || stat.start_ticks == start_ticks);
}

int ct_process_check_owner(const struct ct_process *process)
{
    struct ct_proc_status status;
    const int error = ct_proc_status(process->seen_pid, &status);
    const uint32_t uid = process->uid;
    if (error)
        return error == -ESRCH ? -EPERM : error;
    return uid == 0 || uid == status.real || uid == status.effective || uid == status.saved ? 0 : -EPERM;
}

int ct_process_follow(struct ct_process *process)
{
    const int32_t pid = process->seen_pid;
    process->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (process->pidfd < 0) {
        if (ct_proc_is_short(-errno))
            return -errno;
        if (errno != ESRCH)
            process->looked_up = pid;
    } else {
        fcntl(process->pidfd, F_SETFD, FD_CLOEXEC);
    }
    /* The pid may have been reused: the start time decides, read once a descriptor holds the process. */
    if ((process->pidfd < 0 && !process->looked_up) || !ct_process_lives(pid, process->start_ticks)) {
        atomic_store(&process->dead, true);
        ct_process_let_go(process);
    }
    return 0;
}

bool ct_process_runs(const struct ct_process *process)
{
    struct pollfd ended = { .fd = process->pidfd, .events = POLLIN };
    if (process->pidfd >= 0)
        return poll(&ended, 1, 0) == 0;
    return process->looked_up && ct_process_lives(process->looked_up, process->start_ticks);
}

/* Looks for the file in /proc/PID/maps, which has the device and inode of all that is mapped. */
enum ct_process_hold ct_process_hold(const struct ct_process *process)
{
    char path[64], line[512];
    snprintf(path, sizeof(path), "/proc/%d/maps", process->seen_pid);
    FILE *maps = fopen(path, "re");
    if (!maps)
        return CT_HOLD_UNKNOWN;
    bool any = false, found = false, is_start = true;
    while (!found && fgets(line, sizeof(line), maps)) {
        unsigned long long inode;
        unsigned int major_number, minor_number;
        found = is_start &&
                sscanf(line, "%*s %*s %*s %x:%x %llu", &major_number, &minor_number, &inode) == 3 &&
                inode == process->inode && makedev(major_number, minor_number) == process->device;
        is_start = strchr(line, '\n') != NULL;
        any = true;
    }
    any &= !ferror(maps);
    fclose(maps);
    return found ? CT_HOLD_YES : any ? CT_HOLD_NO : CT_HOLD_UNKNOWN;
}

void ct_process_let_go(struct ct_process *process)
{
    if (process->pidfd >= 0)
        close(process->pidfd);
    process->pidfd = -1;
}
