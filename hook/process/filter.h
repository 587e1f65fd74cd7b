/* Checks system call filters that a program installs for itself. */
#ifndef CT_FILTER_H
#define CT_FILTER_H

#include <stdbool.h>

/* True if the filter allows all system calls in system.def. `filter` is a struct sock_fprog that the kernel
 * has accepted. */
bool ct_filter_passes(const void *filter);

#endif
