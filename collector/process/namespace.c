#include "namespace.h"

#include "proc_file.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Sets *inode to the inode of /proc/PID/ns/KIND, or to 0 if the kernel has no namespaces of this kind.
 * Returns 0 or -errno. */
static int find_namespace(int32_t pid, const char *kind, uint64_t *inode)
{
    char path[64], number[16] = "self";
    struct stat status;
    if (pid != 0)
        snprintf(number, sizeof(number), "%d", pid);
    snprintf(path, sizeof(path), "/proc/%s/ns/%s", number, kind);
    *inode = 0;
    if (stat(path, &status) != 0)
        return errno == ENOENT ? 0 : -errno;
    *inode = status.st_ino;
    return 0;
}

uint64_t ct_namespace_of(int32_t pid)
{
    uint64_t inode;
    find_namespace(pid, "pid", &inode);
    return inode;
}

int ct_namespace_find(uint64_t pid_namespace, int32_t pid, int32_t *found)
{
    *found = 0;
    DIR *proc = opendir("/proc");
    int error = proc ? 0 : -errno;
    for (struct dirent *entry; proc && !ct_proc_is_short(error) && *found == 0 && (entry = readdir(proc));) {
        struct ct_proc_status status;
        const int32_t candidate = (int32_t)strtol(entry->d_name, NULL, 10);
        if (candidate <= 0 || ct_namespace_of(candidate) != pid_namespace)
            continue;
        error = ct_proc_status(candidate, &status);
        if (!error && status.inner_pid == pid)
            *found = candidate;
    }
    if (proc)
        closedir(proc);
    return ct_proc_is_short(error) ? error : 0;
}

/* Reads the clock offsets of the process's children, the only offsets shown in /proc. The process itself has
 * the same offsets, unless it creates its children in a different namespace, which is reported as an
 * error. */
static int offsets_of(int32_t pid, struct ct_time_ahead *offsets)
{
    uint64_t own, children;
    char text[256];
    int error = find_namespace(pid, "time", &own);
    if (!error)
        error = find_namespace(pid, "time_for_children", &children);
    if (!error && own != children)
        error = -ENODATA;
    if (!error)
        error = ct_proc_read(pid, "timens_offsets", text, sizeof(text));
    if (error)
        return error;
    int64_t monotonic_s, monotonic_ns, boottime_s, boottime_ns;
    if (sscanf(text, "monotonic %" SCNd64 " %" SCNd64 " boottime %" SCNd64 " %" SCNd64, &monotonic_s,
               &monotonic_ns, &boottime_s, &boottime_ns) != 4)
        return -EPROTO;
    offsets->monotonic_ns = monotonic_s * 1000000000 + monotonic_ns;
    offsets->boottime_ns = boottime_s * 1000000000 + boottime_ns;
    return 0;
}

int ct_time_ahead_of(int32_t pid, struct ct_time_ahead *ahead)
{
    uint64_t his, ours;
    struct ct_time_ahead of_his, of_ours;
    *ahead = (struct ct_time_ahead){ 0 };
    int error = find_namespace(0, "time", &ours);
    if (!error && ours == 0)
        return 0;
    if (!error)
        error = find_namespace(pid, "time", &his);
    if (!error && his == 0)
        error = -ESRCH;
    if (error || his == ours)
        return error;
    error = offsets_of(pid, &of_his);
    if (!error)
        error = offsets_of(getpid(), &of_ours);
    if (error)
        return error;
    ahead->monotonic_ns = of_his.monotonic_ns - of_ours.monotonic_ns;
    ahead->boottime_ns = of_his.boottime_ns - of_ours.boottime_ns;
    return 0;
}
