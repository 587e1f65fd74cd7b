/* Finds the files that belong to this program: the hook, the daemon and the probe. $CUDATRACE_HOOK,
 * $CUDATRACE_DAEMON and $CUDATRACE_PROBE name them; else they lie where the build or an installation has put
 * them, as seen from this program. Called by run, import and doctor.
 *
 * The path goes into `out` of PATH_MAX bytes; false when there is no such file. */
#ifndef CT_INSTALLED_H
#define CT_INSTALLED_H

#include <stdbool.h>

bool ct_installed_hook(char *out);
/* Returns whether LD_PRELOAD can hold the path: the loader parts its value at spaces and colons, and expands
 * $LIB, $ORIGIN and $PLATFORM in it. */
bool ct_installed_is_nameable(const char *hook);
#define CT_INSTALLED_UNNAMEABLE                                                                              \
    "LD_PRELOAD cannot hold the path '%s': move cudatrace to a folder without spaces, colons and dollar "    \
    "signs in its name"
/* Writes what LD_PRELOAD names for the hook. Without a 32-bit loader on this machine that is its path. With
 * one, the path holds $LIB, so that a 32-bit child's loader finds a library of its own class, and prints no
 * message. */
void ct_installed_preload(const char *hook, char *out);
bool ct_installed_daemon(char *out);
bool ct_installed_probe(char *out);

#endif
