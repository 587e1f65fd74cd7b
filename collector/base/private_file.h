/* Files of the daemon in folders where others may write: nobody else's file is taken for ours, no link is
 * followed that leads us elsewhere, and nobody reads who is not meant to. */
#ifndef CT_PRIVATE_FILE_H
#define CT_PRIVATE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { CT_NO_GROUP = -1 };

/* Says who may read a file besides its owner. */
struct ct_private_readers {
    mode_t mode; /* 0600; 0640 with a group */
    gid_t group; /* (gid_t)CT_NO_GROUP: left as it is */
};
#define CT_PRIVATE ((struct ct_private_readers){ .mode = 0600, .group = (gid_t)CT_NO_GROUP })

/* Makes a file that is there already ours alone, or refuses it: 0, also when there is none; -1 with a
 * sentence in `message`, and nothing changed, when it is no regular file, another user's, a link, or has a
 * second name. The locks that this process holds on it stay. `readers` NULL: it is only looked at. */
int ct_private_own(const char *path, const struct ct_private_readers *readers, char *message, size_t bytes);
/* The same for a descriptor; `path` is for the sentence. */
int ct_private_own_fd(int fd, const char *path, const struct ct_private_readers *readers, char *message,
                      size_t bytes);

#endif
