/* Processes of other namespaces, containers' for the most part: in another pid namespace they know themselves
 * by other numbers than the daemon does. In a time namespace of its own a process has clocks of another
 * origin, CLOCK_MONOTONIC and the boot time by which /proc tells when it began; the processor's counter is
 * the same everywhere. */
#ifndef CT_NAMESPACE_H
#define CT_NAMESPACE_H

#include <stdint.h>

/* Returns the pid namespace of a process, 0 for this one; 0 when it cannot be told. */
uint64_t ct_namespace_of(int32_t pid);
/* Finds the pid by which we know the process that is `pid` in `pid_namespace`. *found is 0 when it is gone,
 * or not to be seen from our namespace. Returns 0, or -errno for want of something that may be had later. */
int ct_namespace_find(uint64_t pid_namespace, int32_t pid, int32_t *found);

/* Says by how much the clocks of a process are ahead of ours. */
struct ct_time_ahead {
    int64_t monotonic_ns, boottime_ns;
};

/* Returns 0, also where the kernel has no such namespaces (before Linux 5.6), or -errno when that cannot be
 * told. */
int ct_time_ahead_of(int32_t pid, struct ct_time_ahead *ahead);

#endif
