/* Where the other two files are, as the build or an installation put them: into `out` of PATH_MAX bytes;
 * false when they are not found. */
#ifndef CT_INSTALLED_H
#define CT_INSTALLED_H

#include <stdbool.h>

bool ct_installed_hook(char *out);
bool ct_installed_daemon(char *out);

#endif
