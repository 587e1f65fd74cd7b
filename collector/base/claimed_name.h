/* Takes the names of the session's files, even if another user has taken them. */
#ifndef CT_CLAIMED_NAME_H
#define CT_CLAIMED_NAME_H

#include <sys/types.h>

/* Removes whatever has the name, without following links. Logs the new name of a directory that is not empty,
 * which is renamed instead. Returns 0 or -errno. */
int ct_claimed_clear(const char *path);
/* Creates a non-blocking socket of the given type at the path, in place of whatever has the name. `mask` is
 * the umask for its mode, and `inode` receives its inode. Returns a descriptor or -errno. */
int ct_claimed_socket(const char *path, int type, mode_t mask, ino_t *inode);

#endif
