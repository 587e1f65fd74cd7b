/* Processes of other pid namespaces, containers' for the most part: they know themselves by other numbers
 * than the daemon does. */
#ifndef CT_NAMESPACE_H
#define CT_NAMESPACE_H

#include <stdint.h>

/* The pid namespace of a process, "self" or a number of ours; 0 when it cannot be told. */
uint64_t ct_namespace_of(const char *process);
/* The pid by which we know the process that is `pid` in `pid_namespace`; *found is 0 when it is gone, or not
 * to be seen from our namespace. 0, or -errno for want of something that may be had
 * later. */
int ct_namespace_find(uint64_t pid_namespace, int32_t pid, int32_t *found);

#endif
