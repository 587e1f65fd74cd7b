#include "say.h"

#include "printable.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int ct_fail(int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = ct_printable_format(format, arguments); /* the text may quote names from a trace */
    va_end(arguments);
    fprintf(stderr, "cudatrace: %s\n", text ? text : "out of memory");
    free(text);
    return status;
}

void ct_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = ct_printable_format(format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s\n", text ? text : "out of memory");
    free(text);
}

static int output_error; /* the errno of the first failed write to standard output */

/* Returns whether standard output is a pipe whose reader has exited. In this case, callers print no error,
 * because the reader may have read all that it needed. */
static bool reader_is_gone(void)
{
    struct pollfd output = { .fd = STDOUT_FILENO, .events = POLLOUT };
    return poll(&output, 1, 0) == 1 && (output.revents & POLLERR);
}

bool ct_flush_output(void)
{
    if (fflush(stdout) != 0 && output_error == 0)
        output_error = errno;
    return output_error == 0 && !ferror(stdout);
}

/* If a write failed before the last flush, its errno is lost, so the message gives no reason. */
int ct_written(int status)
{
    if (ct_flush_output())
        return status;
    if (!reader_is_gone())
        ct_fail(EXIT_FAILURE, "cannot write standard output%s%s", output_error ? ": " : "",
                output_error ? strerror(output_error) : "");
    return status == EXIT_SUCCESS ? EXIT_FAILURE : status;
}
