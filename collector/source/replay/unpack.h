/* Decompresses gzip files into an unnamed file, so that readers can seek in it. */
#ifndef CT_UNPACK_H
#define CT_UNPACK_H

#include <stdbool.h>
#include <stddef.h>

/* Returns whether the file's first bytes are those of a gzip file. */
bool ct_is_packed(int fd);
/* Returns the folder for unnamed files, which is $TMPDIR or /var/tmp. */
const char *ct_nameless_folder(void);
/* Creates an empty unnamed file. Returns a descriptor, or -1 with errno set. */
int ct_nameless_file(void);
/* Decompresses a file into an unnamed file. Returns a descriptor of the unnamed file, or -1 with the rest of
 * a sentence in `why`. If the file is damaged or truncated, the unnamed file has the bytes before that point,
 * and `why` is the rest of a sentence about it. Otherwise, `why` is empty. `fd` stays open. */
int ct_unpack(int fd, char *why, size_t bytes);

#endif
