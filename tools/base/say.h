/* Prints a command's messages to standard error, and checks that its results reached standard output. Called
 * by all commands. */
#ifndef CT_SAY_H
#define CT_SAY_H

#include <stdbool.h>
#include <stdlib.h>

enum { EXIT_USAGE = 2 };

/* "cudatrace: …" and a line's end on standard error; returns the status. */
int ct_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes what was printed; false when that failed now or before, which ct_written() says at the end. */
bool ct_flush_output(void);
/* The status of a command: a failure, which is said, if what it printed did not get to where it should. */
int ct_written(int status);

#endif
