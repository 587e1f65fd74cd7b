#include "log.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const char *log_path;

void ct_log_to(const char *path)
{
    log_path = path;
}

void ct_log_stamp(char stamp[CT_LOG_STAMP_BYTES])
{
    const time_t now = time(NULL);
    struct tm local;
    strftime(stamp, CT_LOG_STAMP_BYTES, "%Y-%m-%d %H:%M:%S", localtime_r(&now, &local));
}

void ct_log(const char *format, ...)
{
    char text[900], line[1024], stamp[CT_LOG_STAMP_BYTES];
    ct_log_stamp(stamp);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    const int length = snprintf(line, sizeof(line), "%s cudatraced[%d]: %s\n", stamp, (int)getpid(), text);
    int fd = STDERR_FILENO;
    if (log_path)
        fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    /* A line that cannot be written has nowhere else to go. */
    const bool written = fd >= 0 && write(fd, line, (size_t)length) == length;
    (void)written;
    if (log_path && fd >= 0)
        close(fd);
}
