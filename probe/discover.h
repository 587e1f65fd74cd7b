/* Runs a command, and counts the functions of modules of the kernel that it and its children reach
 * (`cudatrace probe --discover`). The counts are printed as a table of hooks. */
#ifndef CT_PROBE_DISCOVER_H
#define CT_PROBE_DISCOVER_H

#include "probe_options.h"

/* Returns the command's exit status, or EXIT_FAILURE if the command was not started. If a signal killed the
 * command, the same signal kills this process. The command's output, descriptors and signals are unchanged.
 */
int ct_discover(const struct ct_probe_options *options);

#endif
