/* Finds the two files that belong to this program: the hook and the daemon. $CUDATRACE_HOOK and
 * $CUDATRACE_DAEMON name them; else they lie where the build or an installation has put them, as seen from
 * this program. Called by run, import and doctor.
 *
 * The path goes into `out` of PATH_MAX bytes; false when there is no such file. */
#ifndef CT_INSTALLED_H
#define CT_INSTALLED_H

#include <stdbool.h>

bool ct_installed_hook(char *out);
bool ct_installed_daemon(char *out);

#endif
