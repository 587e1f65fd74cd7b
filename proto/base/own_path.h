/* Opens and removes files without following symbolic links of other users. A user may exchange a folder of
 * the path for a link at any time, so that root would create or remove a file wherever the user wants. Links
 * that belong to root or to this user are followed. Callers resolve the links in a path that a user has given
 * once, with ct_own_path_resolve(). */
#ifndef CT_OWN_PATH_H
#define CT_OWN_PATH_H

#include <stddef.h>
#include <sys/types.h>

/* Resolves the links in the folder of a path, with the checks of output_target.h. Returns NULL, or a sentence
 * that names a link of another user, which is valid until this thread's next call. Leaves the path as it is
 * if there is no such folder, or if the result does not fit into `bytes`. */
const char *ct_own_path_resolve(char *path, size_t bytes);
/* Checks the links in the path of a folder in the same way, and leaves the path as it is. */
const char *ct_own_path_check_folder(const char *path);
/* Resolves all links in the path of an existing file. Returns 0 or -errno, and sets *why to such a sentence
 * or to NULL. Also refuses a file that another user may have planted. */
int ct_own_path_follow(char *path, size_t bytes, const char **why);
/* Opens the folder of a path, which is relative to the working directory or absolute. `end` is the beginning
 * of the last name in `path`. Returns a descriptor (O_PATH), or -1 and sets errno. */
int ct_own_path_folder(const char *path, const char *end);
/* Like openat(), for a single name. */
int ct_own_path_openat(int folder, const char *name, int flags, mode_t mode);
/* Like open(). Safe in signal handlers. */
int ct_own_path_open(const char *path, int flags, mode_t mode);
/* Like unlink(). */
int ct_own_path_unlink(const char *path);

#endif
