#include "exit_status.h"

#include "namespace.h"

#include <assert.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* Fields 22 and 52 of a zombie's /proc/PID/stat. The latter is 0 to those who may not look at the process:
 * who may not see its namespace either. */
static bool ask_zombie(int32_t pid, uint64_t start_ticks, int *status)
{
    char path[64], name[16], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    snprintf(name, sizeof(name), "%d", pid);
    const int fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return false;
    const ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *field = strrchr(text, ')');
    const bool ended = field && (strncmp(field, ") Z", 3) == 0 || strncmp(field, ") X", 3) == 0);
    if (!ended || ct_namespace_of(name) == 0)
        return false;
    bool same = start_ticks == 0;
    for (int i = 0; field && i < 50; i++) {
        same |= i == 20 && strtoull(field, NULL, 10) == start_ticks;
        field = strchr(field + 1, ' ');
    }
    if (!field || !same)
        return false;
    *status = (int)strtol(field, NULL, 10);
    return true;
}

enum ct_ending ct_exit_status(int pidfd, int32_t pid, uint64_t start_ticks)
{
    int status;
    if (!ask_zombie(pid, start_ticks, &status) && !ask_pidfd(pidfd, &status))
        return CT_ENDING_UNKNOWN;
    return WIFSIGNALED(status) ? CT_ENDING_KILLED : CT_ENDING_EXITED;
}
