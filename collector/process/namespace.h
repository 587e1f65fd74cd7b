/* Finds processes in other namespaces, mostly in containers. In another pid namespace, a process has a
 * different pid for itself than for the daemon. In another time namespace, CLOCK_MONOTONIC has a different
 * origin, and /proc counts a process's start from a different boot time. The processor's counter is the same
 * in all namespaces. */
#ifndef CT_NAMESPACE_H
#define CT_NAMESPACE_H

#include <stdint.h>

/* Returns the pid namespace of process `pid`, or of the calling process if `pid` is 0. Returns 0 if
 * unknown. */
uint64_t ct_namespace_of(int32_t pid);
/* Finds the process with the given pid in `pid_namespace`. Sets *found to its pid in the daemon's namespace,
 * or to 0 if the process has exited or is not visible there. Returns 0, or -errno for a shortage that may be
 * temporary. */
int ct_namespace_find(uint64_t pid_namespace, int32_t pid, int32_t *found);

/* How far a process's clocks are ahead of the daemon's. */
struct ct_time_ahead {
    int64_t monotonic_ns, boottime_ns;
};

/* Returns 0, or -errno if unknown. Also returns 0 if the kernel has no time namespaces (before Linux 5.6). */
int ct_time_ahead_of(int32_t pid, struct ct_time_ahead *ahead);

#endif
