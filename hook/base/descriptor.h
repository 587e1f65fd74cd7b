/* The descriptors that the hook has, each for a moment: nothing else in hook/ opens files.
 *
 * A program may have closed its standard input, output or error, and a thread of it may write to that number
 * all the same, which fails. A file of ours must not have it, not for an instant. */
#ifndef CT_DESCRIPTOR_H
#define CT_DESCRIPTOR_H

#include <stddef.h>
#include <sys/types.h>

/* open() and socket() with a result of 3 or more, or -1 with errno. All descriptors are closed by exec. */
int ct_descriptor_open(const char *path, int flags, mode_t mode);
int ct_descriptor_socket(int domain, int type);
/* Reads a file's beginning, which gets a NUL behind it; its length, 0 where it cannot be read. */
size_t ct_descriptor_read(const char *path, char *text, size_t bytes);
/* In a fork's child: takes away what stood in for a closed number while the parent opened something. */
void ct_descriptor_forget(void);

#endif
