/* Opens the hook's file descriptors, each only for a short time. No other code in hook/ opens files.
 *
 * A program may have closed its standard input, output or error. If a thread still writes to such a
 * descriptor, the write must fail. The hook's files must therefore never occupy descriptors 0 to 2, not even
 * for an instant. */
#ifndef CT_DESCRIPTOR_H
#define CT_DESCRIPTOR_H

#include <stddef.h>
#include <sys/types.h>

/* Like open() and socket(), but return a descriptor of at least 3, or -1 with errno set. All descriptors are
 * close-on-exec. */
int ct_descriptor_open(const char *path, int flags, mode_t mode);
int ct_descriptor_socket(int domain, int type);
/* Reads the beginning of a file and appends a NUL. Returns the length, or 0 if the file cannot be read. */
size_t ct_descriptor_read(const char *path, char *text, size_t bytes);
/* Called in the child of a fork. If the parent was opening a file during the fork, closes the placeholder
 * descriptors that the child inherited. */
void ct_descriptor_forget(void);

#endif
