/* Filters of system calls, which a program puts on itself. */
#ifndef CT_FILTER_H
#define CT_FILTER_H

#include <stdbool.h>

/* True if it lets pass every row of system.def. `filter` is a struct sock_fprog that the kernel has. */
bool ct_filter_passes(const void *filter);

#endif
