/* The hook's descriptors, each open only briefly. Nothing else in hook/ opens files.
 *
 * A program may have closed its standard input, output or error. If one of its threads still writes to that
 * descriptor, the write must fail. So the hook's files must never have the descriptors 0 to 2, not even for
 * an instant. */
#ifndef CT_DESCRIPTOR_H
#define CT_DESCRIPTOR_H

#include <stddef.h>
#include <sys/types.h>

/* Like open() and socket(), but return a descriptor of at least 3, or -1 with errno. All descriptors are
 * close-on-exec. */
int ct_descriptor_open(const char *path, int flags, mode_t mode);
int ct_descriptor_socket(int domain, int type);
/* Reads the beginning of a file and appends a NUL. Returns the length, or 0 if the file cannot be read. */
size_t ct_descriptor_read(const char *path, char *text, size_t bytes);
/* In a fork's child: closes the descriptors that filled closed numbers while the parent opened something. */
void ct_descriptor_forget(void);

#endif
