/* Processes in other namespaces, mostly of containers. In another pid namespace, a process has a different
 * pid for itself than for the daemon. In another time namespace, its CLOCK_MONOTONIC has a different origin,
 * and /proc counts its start from a different boot time. The processor's counter is the same in all
 * namespaces. */
#ifndef CT_NAMESPACE_H
#define CT_NAMESPACE_H

#include <stdint.h>

/* Returns the pid namespace of a process (0: of the caller), or 0 if unknown. */
uint64_t ct_namespace_of(int32_t pid);
/* Finds the process that has `pid` in `pid_namespace`. Sets *found to its pid in our namespace, or to 0 if it
 * has ended or is not visible there. Returns 0, or -errno for a shortage that may end later. */
int ct_namespace_find(uint64_t pid_namespace, int32_t pid, int32_t *found);

/* How far a process's clocks are ahead of ours. */
struct ct_time_ahead {
    int64_t monotonic_ns, boottime_ns;
};

/* Returns 0, even if the kernel has no time namespaces (before Linux 5.6), or -errno if unknown. */
int ct_time_ahead_of(int32_t pid, struct ct_time_ahead *ahead);

#endif
