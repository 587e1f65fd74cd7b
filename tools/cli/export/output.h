/* A file that a command makes, whatever the path is that it was given.
 *
 * "-" is standard output. What exists and is no regular file (a FIFO, a device, an open descriptor by its
 * name in /dev/fd) is written to as it is. A regular file is made beside its name, 0600 as traces are or with
 * the mode and owner of the one that it replaces, and gets the name when it is whole: after a failure or a
 * signal nothing of it is left, and what was there is as it was. Where no file can be made beside it, it is
 * made in $TMPDIR and copied. Links are followed, but for those that another user has laid in a folder for
 * everybody; his files and FIFOs there are left alone, too.
 *
 * One at a time, since a signal's handler takes it away. */
#ifndef CT_OUTPUT_H
#define CT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct ct_output;

/* With `by_name` it is filled through ct_output_file() and not through a stream. NULL, and in *why a sentence
 * that is valid as strerror()'s are, when there is nothing to write to. */
struct ct_output *ct_output_open(const char *path, bool by_name, const char **why);
/* NULL with `by_name`; its descriptor is nobody's business. */
FILE *ct_output_stream(const struct ct_output *output);
/* The name of an empty file; NULL without `by_name`. */
const char *ct_output_file(const struct ct_output *output);
/* Returns the folder of the file that is filled first and then copied; NULL when nothing is copied. */
const char *ct_output_stage(const struct ct_output *output);
/* The file is open by its name, and needs it no more. */
void ct_output_is_open(void);
/* All is written: it gets its name. 0 or -errno; either way `output` is gone. */
int ct_output_finish(struct ct_output *output);
/* Nothing of it is left, but for what a pipe or a device has taken already. */
void ct_output_discard(struct ct_output *output);

#endif
