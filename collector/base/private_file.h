/* Protects the daemon's files in folders that other users can write to. Never uses another user's file, never
 * follows a link, and allows only the intended readers. */
#ifndef CT_PRIVATE_FILE_H
#define CT_PRIVATE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { CT_NO_GROUP = -1 };

/* The users who may read a file in addition to its owner. */
struct ct_private_readers {
    mode_t mode; /* 0600; 0640 with a group */
    gid_t group; /* (gid_t)CT_NO_GROUP: unchanged */
};
#define CT_PRIVATE ((struct ct_private_readers){ .mode = 0600, .group = (gid_t)CT_NO_GROUP })

/* Restricts an existing file to its owner and `readers`. Returns 0, even if the file does not exist. Refuses
 * any file that is not a regular file, belongs to another user or has more than one hard link, and also
 * refuses links. On refusal, returns -1 with a sentence in `message` and changes nothing. Keeps the locks
 * that this process holds on the file. If `readers` is NULL, only checks the file. */
int ct_private_own(const char *path, const struct ct_private_readers *readers, char *message, size_t bytes);
/* Does the same as ct_private_own() for an open file. `path` is used only in the message. */
int ct_private_own_fd(int fd, const char *path, const struct ct_private_readers *readers, char *message,
                      size_t bytes);

#endif
