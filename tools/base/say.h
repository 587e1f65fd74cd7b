/* Prints a command's messages to standard error, and checks that its results reached standard output. Called
 * by all commands. */
#ifndef CT_SAY_H
#define CT_SAY_H

#include <stdbool.h>
#include <stdlib.h>

enum { EXIT_USAGE = 2 };

/* Prints "cudatrace: …" and a newline on standard error. Returns the status. */
int ct_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes out buffered output. Returns false if this write or an earlier one failed. ct_written() reports the
 * failure at the end. */
bool ct_flush_output(void);
/* Returns the exit status of a command. Reports a failure if its output could not be written. */
int ct_written(int status);

#endif
