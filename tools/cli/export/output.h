/* Writes a command's output file, for any kind of path.
 *
 * "-" is standard output. An existing file of another type (a FIFO, a device, or an open descriptor named in
 * /dev/fd) is written directly. A regular file is created next to the target, with mode 0600 like traces, or
 * with the mode and owner of the file that it replaces. When complete, the new file is renamed to the target.
 * After a failure or a signal, the new file is removed and the old one is unchanged. If no file can be
 * created next to the target, it is created in $TMPDIR and then copied. Links are followed, except those that
 * another user has put into a shared folder. Other users' files and FIFOs in a shared folder are not written
 * to either.
 *
 * Only one output can be open at a time, because a signal handler removes its file. */
#ifndef CT_OUTPUT_H
#define CT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct ct_output;

/* Opens the output. With `by_name`, there is no stream, and the caller opens the file named by
 * ct_output_file(). If the path cannot be opened, returns NULL and sets *why to a sentence, which stays valid
 * as long as a result of strerror(). */
struct ct_output *ct_output_open(const char *path, bool by_name, const char **why);
/* Returns the stream to write to, or NULL with `by_name`. Callers must not use the stream's descriptor. */
FILE *ct_output_stream(const struct ct_output *output);
/* With `by_name`, returns the path of the empty file to fill, and NULL otherwise. */
const char *ct_output_file(const struct ct_output *output);
/* Returns the folder of the staging file, or NULL if no staging file is used. */
const char *ct_output_stage(const struct ct_output *output);
/* Must be called once the file has been opened by name, because the name is then no longer needed. */
void ct_output_is_open(void);
/* Completes the output and gives the file its final name. Returns 0 or -errno, and always frees `output`. */
int ct_output_finish(struct ct_output *output);
/* Removes the file and frees `output`. Bytes already written to a pipe or device cannot be taken back. */
void ct_output_discard(struct ct_output *output);

#endif
