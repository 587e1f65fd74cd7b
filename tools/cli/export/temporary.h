/* Creates temporary files with unpredictable names, and removes them if a signal ends the process. */
#ifndef CT_TEMPORARY_H
#define CT_TEMPORARY_H

#include <limits.h>
#include <stdbool.h>

/* The kinds of temporary files. At most one file of each kind can exist at a time. The first kind is next to
 * the file that it replaces, and the second is a staging file that is copied later. */
enum ct_temporary { CT_TEMPORARY_BESIDE, CT_TEMPORARY_STAGE, CT_TEMPORARIES };

/* Creates a file in the folder with mode 0600, regardless of the umask, and opens it for reading and writing.
 * Returns the file's descriptor or -errno. */
int ct_temporary_make(enum ct_temporary which, int folder);
bool ct_temporary_exists(enum ct_temporary which);
/* Stores the file's path in `path`. Returns false if the path is too long or unknown. */
bool ct_temporary_path(enum ct_temporary which, char path[PATH_MAX]);
/* Renames the file to `name` in its folder, replacing any existing file of that name. Returns 0 or -errno.
 * After an error, the file is still temporary. */
int ct_temporary_rename(enum ct_temporary which, const char *name);
/* Unlinks the file if it still has a name. The file's content stays available through open descriptors. */
void ct_temporary_remove(enum ct_temporary which);

#endif
