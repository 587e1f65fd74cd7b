/* Checks system call filters that a program installs for itself. */
#ifndef CT_FILTER_H
#define CT_FILTER_H

#include <stdbool.h>

/* True if `filter`, a struct sock_fprog that the kernel has accepted, allows all system calls in
 * system.def. */
bool ct_filter_passes(const void *filter);
/* The same for the system calls of reports (ROW_OF_REPORTS). */
bool ct_filter_passes_reports(const void *filter);

#endif
