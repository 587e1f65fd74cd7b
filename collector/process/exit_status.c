#include "exit_status.h"

#include "namespace.h"
#include "proc_file.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

/* From <linux/pidfd.h> of Linux 6.15: the status is there once the parent has asked for it. */
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

/* A zombie's exit code is 0 to those who may not look at the process: who may not see its namespace either.
 */
static bool ask_zombie(int32_t pid, uint64_t start_ticks, int *status)
{
    char name[16];
    struct ct_proc_stat stat;
    snprintf(name, sizeof(name), "%d", pid);
    if (pid <= 0 || ct_proc_stat(pid, &stat) != 0 || !stat.first_ended || ct_namespace_of(name) == 0 ||
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
