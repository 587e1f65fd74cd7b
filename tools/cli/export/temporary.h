/* Temporary files with unpredictable names, which are removed if a signal ends the process. */
#ifndef CT_TEMPORARY_H
#define CT_TEMPORARY_H

#include <limits.h>
#include <stdbool.h>

/* At most one file of each kind can exist at a time. One is next to the file that it replaces. The other is a
 * stage that is copied later. */
enum ct_temporary { CT_TEMPORARY_BESIDE, CT_TEMPORARY_STAGE, CT_TEMPORARIES };

/* Makes a file in the folder, with mode 0600 whatever the umask is, open for reading and writing. Returns its
 * descriptor or -errno. */
int ct_temporary_make(enum ct_temporary which, int folder);
bool ct_temporary_exists(enum ct_temporary which);
/* Gets its path. Returns false if the path is too long or unknown. */
bool ct_temporary_path(enum ct_temporary which, char path[PATH_MAX]);
/* Renames the file to a name in its folder, replacing an existing file. Returns 0 or -errno. After an error,
 * it is still a temporary file. */
int ct_temporary_rename(enum ct_temporary which, const char *name);
/* Removes the file's name, if it still has one. Its content stays available through open descriptors. */
void ct_temporary_remove(enum ct_temporary which);

#endif
