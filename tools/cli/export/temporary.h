/* Temporary files with names that nobody can foresee, which no signal leaves behind. */
#ifndef CT_TEMPORARY_H
#define CT_TEMPORARY_H

#include <limits.h>
#include <stdbool.h>

/* As many as there can be at a time: beside what is replaced, and to be copied from. */
enum ct_temporary { CT_TEMPORARY_BESIDE, CT_TEMPORARY_STAGE, CT_TEMPORARIES };

/* A new file in the folder, 0600 whatever the umask is, to be read and written: its descriptor, or -errno. */
int ct_temporary_make(enum ct_temporary which, int folder);
bool ct_temporary_exists(enum ct_temporary which);
/* Its path; false when there is none that fits. */
bool ct_temporary_path(enum ct_temporary which, char path[PATH_MAX]);
/* Gives it a name in its folder, where it replaces what is there: 0 or -errno, and it is a temporary file
 * still. */
int ct_temporary_rename(enum ct_temporary which, const char *name);
/* Takes its name away, if it has one still; who has it open keeps what is in it. */
void ct_temporary_remove(enum ct_temporary which);

#endif
