/* Runs a command, and counts how often the command and its children call each function of some kernel modules
 * (`cudatrace probe --discover`). The functions are printed as a table of hooks. */
#ifndef CT_PROBE_DISCOVER_H
#define CT_PROBE_DISCOVER_H

#include "probe_options.h"

/* Returns the command's exit status, or EXIT_FAILURE if the command was not started. If a signal killed the
 * command, the same signal kills this process. The command's output, descriptors and signals are unchanged.
 */
int ct_discover(const struct ct_probe_options *options);

#endif
