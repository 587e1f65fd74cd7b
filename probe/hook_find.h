/* Finds the targets of hooks: functions in libraries and in the kernel, and tracepoints. */
#ifndef CT_PROBE_HOOK_FIND_H
#define CT_PROBE_HOOK_FIND_H

#include "hook_table.h"

/* A view of tracefs, even where it is not mounted. Returns a descriptor of its folder or -errno. It needs
 * CAP_SYS_ADMIN if tracefs is not mounted. */
int ct_hook_open_tracefs(void);

/* Returns the address that functions of the kernel return to while a kprobe awaits their return, or 0 if the
 * kernel hides its addresses. It needs CAP_SYSLOG. */
uint64_t ct_hook_find_trampoline(void);

/* Finds the targets, and sets `is_found`, `function`, `offset` or `event` of the hooks, and the sources in
 * tracepoints' records. Prints a line for each hook without a target, beginning with `path`. Returns whether
 * all have one. */
bool ct_hook_find_all(struct ct_hook_table *table, int tracefs, const char *path);

#endif
