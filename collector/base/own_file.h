/* Checks that no other user has access to a file. If other users can write to the folder, any of them could
 * have created the file. */
#ifndef CT_OWN_FILE_H
#define CT_OWN_FILE_H

#include <stddef.h>

/* Returns 0, or -1 with a sentence in `message`. Refuses links, and any file that is not a regular file,
 * belongs to another user or has more than one hard link. `path` is used only in the message. */
int ct_own_file_check(int fd, const char *path, char *message, size_t bytes);
/* Writes a sentence to `message` that explains why the file cannot be used. Always returns -1. */
int ct_own_file_refuse(const char *path, const char *reason, char *message, size_t bytes);

#endif
