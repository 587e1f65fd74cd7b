/* Unpacks gzip files to a file without a name, so that readers can seek in it. */
#ifndef CT_UNPACK_H
#define CT_UNPACK_H

#include <stdbool.h>

/* Returns whether the file begins like a gzip file. */
bool ct_is_packed(int fd);
/* Makes an empty file without a name, in $TMPDIR or /var/tmp. Returns -1 on failure. */
int ct_nameless_file(void);
/* Returns a descriptor of the unpacked contents, in $TMPDIR or /var/tmp, or -1 with the rest of a sentence in
 * *why. `fd` stays the caller's. */
int ct_unpack(int fd, const char **why);

#endif
