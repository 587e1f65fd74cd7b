/* Writes the output file of a command, for any kind of path.
 *
 * "-" is standard output. An existing file that is not a regular file (a FIFO, a device, an open descriptor
 * by its name in /dev/fd) is written directly. A regular file is made next to the target, with mode 0600 like
 * traces, or with the mode and owner of the file that it replaces. It gets the target's name when it is
 * complete. After a failure or a signal, the new file is removed and the old one is unchanged. If no file can
 * be made next to the target, it is made in $TMPDIR and copied. Links are followed, except those that another
 * user has put into a shared folder. That user's files and FIFOs there are not written, either.
 *
 * Only one output can be open at a time, since a signal handler removes its file. */
#ifndef CT_OUTPUT_H
#define CT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct ct_output;

/* With `by_name`, the caller fills the file through ct_output_file() and not through a stream. Returns NULL
 * if the path cannot be opened. *why is then a sentence that is valid as long as a result of strerror(). */
struct ct_output *ct_output_open(const char *path, bool by_name, const char **why);
/* Returns the stream, or NULL with `by_name`. Callers do not use its descriptor. */
FILE *ct_output_stream(const struct ct_output *output);
/* Returns the name of the empty file to fill, or NULL without `by_name`. */
const char *ct_output_file(const struct ct_output *output);
/* Returns the folder of a file that is filled first and then copied, or NULL if nothing is copied. */
const char *ct_output_stage(const struct ct_output *output);
/* Called when the caller has opened the file by its name. The name is no longer needed. */
void ct_output_is_open(void);
/* Gives the complete file its name. Returns 0 or -errno, and frees `output` either way. */
int ct_output_finish(struct ct_output *output);
/* Removes the file. A pipe or a device keeps the bytes that it has received. */
void ct_output_discard(struct ct_output *output);

#endif
