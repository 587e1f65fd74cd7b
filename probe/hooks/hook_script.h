/* Prints a table of hooks as a script for bpftrace, which records the same calls, but in all processes. */
#ifndef CT_PROBE_HOOK_SCRIPT_H
#define CT_PROBE_HOOK_SCRIPT_H

#include "hook_table.h"

/* Prints the hooks whose targets ct_hook_find_all() has found. */
void ct_hook_script_print(const struct ct_hook_table *table);

#endif
