#include "identity.h"

#include "namespace.h"
#include "proc_file.h"
#include "test_point.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
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
    CT_TEST_POINT("owner.checking");
    const int error = ct_proc_status(process->seen_pid, &status);
    const uint32_t uid = process->uid;
    if (uid == 0 || (!error && (uid == status.real || uid == status.effective || uid == status.saved)))
        return 0;
    if (error && error != -ESRCH)
        return error;
    /* If the process has exited since it was found, the pid may already belong to another process. */
    return !ct_process_runs(process) ? 0 : error ? error : -EPERM;
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
    /* The pid may have been reused, so check the start time. Check it after opening the pidfd, so that the
     * pidfd and the time belong to the same process. */
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

/* Looks the file up in /proc/PID/maps, which shows the device and inode of every mapping. */
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

/* ---- exit status ---- */

/* From <linux/pidfd.h> in Linux 6.15. The exit code is available once the parent has waited for the
 * process. */
struct pidfd_info {
    uint64_t mask, cgroup;
    uint32_t pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
    int32_t exit_code;
};
static_assert(sizeof(struct pidfd_info) == 64, "PIDFD_INFO_SIZE_VER0");
#define PIDFD_INFO_EXIT (UINT64_C(1) << 3)
#define PIDFD_GET_INFO  _IOWR(0xFF, 11, struct pidfd_info)

static bool ask_pidfd(int pidfd, int *status)
{
    struct pidfd_info info = { .mask = PIDFD_INFO_EXIT };
    if (pidfd < 0 || ioctl(pidfd, PIDFD_GET_INFO, &info) != 0 || !(info.mask & PIDFD_INFO_EXIT))
        return false;
    *status = info.exit_code;
    return true;
}

/* To readers without permission to inspect it, a zombie's exit code reads as 0. Such readers cannot read its
 * namespace either, so check that the namespace can be read. */
static bool ask_zombie(int32_t pid, uint64_t start_ticks, int *status)
{
    struct ct_proc_stat stat;
    /* Read the start time last. If it is the zombie's, the namespace was the zombie's, too. */
    if (pid <= 0 || ct_namespace_of(pid) == 0 || ct_proc_stat(pid, &stat) != 0 || !stat.first_ended ||
        (start_ticks != 0 && stat.start_ticks != start_ticks))
        return false;
    *status = stat.exit_code;
    return true;
}

enum ct_ending ct_exit_status(int pidfd, int32_t pid, uint64_t start_ticks)
{
    int status;
    if (!ask_zombie(pid, start_ticks, &status) && !ask_pidfd(pidfd, &status))
        return CT_ENDING_UNKNOWN;
    return WIFSIGNALED(status) ? CT_ENDING_KILLED : CT_ENDING_EXITED;
}
