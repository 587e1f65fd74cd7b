/* Checks that a file is ours alone: in a folder where others may write, anybody may have put it there. */
#ifndef CT_OWN_FILE_H
#define CT_OWN_FILE_H

#include <stddef.h>

/* 0, or -1 with a sentence in `message` when it is no regular file, another user's, a link, or has a second
 * name. `path` is for the sentence. */
int ct_own_file_check(int fd, const char *path, char *message, size_t bytes);
/* Says in `message` that it is not touched, and why; -1. */
int ct_own_file_refuse(const char *path, const char *reason, char *message, size_t bytes);

#endif
