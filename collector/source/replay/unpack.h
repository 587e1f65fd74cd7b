/* Unpacks gzip files to a file without a name, so that readers can seek in it. */
#ifndef CT_UNPACK_H
#define CT_UNPACK_H

#include <stdbool.h>
#include <stddef.h>

/* Returns whether the file begins like a gzip file. */
bool ct_is_packed(int fd);
/* Returns the folder of files without a name: $TMPDIR or /var/tmp. */
const char *ct_nameless_folder(void);
/* Makes an empty file without a name. Returns -1, with errno set, on failure. */
int ct_nameless_file(void);
/* Returns a descriptor of the unpacked contents, a file without a name, or -1 with the rest of a sentence in
 * `why`. `fd` stays the caller's. */
int ct_unpack(int fd, char *why, size_t bytes);

#endif
