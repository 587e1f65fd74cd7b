/* Finds the files that belong to this program: the hook, the daemon and the probe. $CUDATRACE_HOOK,
 * $CUDATRACE_DAEMON and $CUDATRACE_PROBE override their paths. If a variable is unset, the file is looked up
 * relative to this program, where the build or `meson install` puts it. Called by run, import and doctor.
 *
 * The functions store the path in `out`, which has PATH_MAX bytes, and return false if there is no such
 * file. */
#ifndef CT_INSTALLED_H
#define CT_INSTALLED_H

#include <stdbool.h>

bool ct_installed_hook(char *out);
/* Returns whether the path can be used in LD_PRELOAD. The loader splits the variable at spaces and colons,
 * and expands $LIB, $ORIGIN and $PLATFORM in it. */
bool ct_installed_is_nameable(const char *hook);
#define CT_INSTALLED_UNNAMEABLE                                                                              \
    "LD_PRELOAD cannot contain the path '%s': move cudatrace to a directory without spaces, colons or "      \
    "dollar signs in its path"
/* Writes the hook's entry for LD_PRELOAD. If this machine has no 32-bit loader, the entry is the hook's path.
 * With a 32-bit loader, the path contains $LIB, so that a 32-bit child finds a library of its own class and
 * prints no error. */
void ct_installed_preload(const char *hook, char *out);
bool ct_installed_daemon(char *out);
bool ct_installed_probe(char *out);

#endif
