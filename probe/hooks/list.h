/* Lists possible targets of hooks (`cudatrace probe --list`): functions of the kernel and of libraries, and
 * tracepoints. Nothing is attached. If a hook on a target would be refused, the target's line begins with
 * '#'. With --verbose, each line is a complete line of a table of hooks, with a name and fields. */
#ifndef CT_PROBE_LIST_H
#define CT_PROBE_LIST_H

#include "probe_options.h"

/* Prints the list. Returns the exit status: EXIT_FAILURE if a pattern matches nothing, EXIT_USAGE if a
 * pattern is invalid. */
int ct_list(const struct ct_probe_options *options);

#endif
