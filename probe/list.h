/* Lists what lines of a table of hooks can name (`cudatrace probe --list`): functions of the kernel and of
 * libraries, and tracepoints. It attaches nothing. A line that begins with '#' is a target that would be
 * refused. With --verbose, each line is a line for a table, with a name and fields. */
#ifndef CT_PROBE_LIST_H
#define CT_PROBE_LIST_H

#include "probe_options.h"

/* Prints the list. Returns the exit status, which is EXIT_FAILURE if a pattern matches nothing, and
 * EXIT_USAGE for an invalid pattern. */
int ct_list(const struct ct_probe_options *options);

#endif
