/* Prints a command's error messages, and checks that its results were written to standard output. Called by
 * all commands. */
#ifndef CT_SAY_H
#define CT_SAY_H

#include <stdbool.h>
#include <stdlib.h>

enum { EXIT_USAGE = 2 };

/* Prints "cudatrace: …" and a newline to standard error. Returns `status`. */
int ct_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints a line to standard error, without what a terminal would obey. */
void ct_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Flushes standard output. Returns false if this or an earlier write failed; ct_written() reports the failure
 * when the command ends. */
bool ct_flush_output(void);
/* Flushes a command's output and returns its exit status. Reports an error if the output could not be
 * written. */
int ct_written(int status);

#endif
