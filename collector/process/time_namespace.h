/* Tells how far the clocks of a process are ahead of ours. In a time namespace CLOCK_MONOTONIC has another
 * origin, and so has the boot time by which /proc tells when a process began. The processor's counter is the
 * same everywhere. Loop thread. */
#ifndef CT_TIME_NAMESPACE_H
#define CT_TIME_NAMESPACE_H

#include <stdint.h>

struct ct_time_ahead {
    int64_t monotonic_ns, boottime_ns;
};

/* 0, also where the kernel has no such namespaces (before Linux 5.6); or -errno when that cannot be told. */
int ct_time_ahead_of(int32_t pid, struct ct_time_ahead *ahead);

#endif
