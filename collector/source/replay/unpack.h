/* Unpacks gzip files into a file without a name, so that readers can seek in it. */
#ifndef CT_UNPACK_H
#define CT_UNPACK_H

#include <stdbool.h>
#include <stddef.h>

/* Returns whether the file begins like a gzip file. */
bool ct_is_packed(int fd);
/* Returns the folder of files without a name: $TMPDIR or /var/tmp. */
const char *ct_nameless_folder(void);
/* Makes an empty file without a name. Returns a descriptor, or -1 with errno set. */
int ct_nameless_file(void);
/* Unpacks a file into a file without a name. Returns a descriptor of it, or -1 with the rest of a sentence in
 * `why`. `fd` stays the caller's. */
int ct_unpack(int fd, char *why, size_t bytes);

#endif
