#include "time_namespace.h"

#include "proc_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The namespace behind /proc/PID/ns/NAME, 0 where there is none of the kind; -errno. */
static int namespace_of(int32_t pid, const char *name, ino_t *inode)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, name);
    *inode = 0;
    if (stat(path, &status) != 0)
        return errno == ENOENT ? 0 : -errno;
    *inode = status.st_ino;
    return 0;
}

/* Reads the offsets of the namespace that the process's children will have: /proc has no others. They are the
 * process's own unless it is about to make another namespace, which is an error. */
static int offsets_of(int32_t pid, struct ct_time_ahead *offsets)
{
    ino_t own, children;
    char text[256];
    int error = namespace_of(pid, "time", &own);
    if (!error)
        error = namespace_of(pid, "time_for_children", &children);
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
    ino_t his, ours;
    struct ct_time_ahead of_his, of_ours;
    *ahead = (struct ct_time_ahead){ 0 };
    int error = namespace_of(getpid(), "time", &ours);
    if (!error && ours == 0)
        return 0;
    if (!error)
        error = namespace_of(pid, "time", &his);
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
