#include "log.h"

#include "private_file.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char *log_path;

void ct_log_to(const char *path)
{
    log_path = path;
}

void ct_log(const char *format, ...)
{
    char text[900], line[1024], stamp[40];
    const time_t now = time(NULL);
    struct tm local;
    strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", localtime_r(&now, &local));
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    /* Names of programs and files are others' to choose: a line stays one line, and a terminal obeys none of
     * it. */
    for (char *c = text; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    }
    const int length = snprintf(line, sizeof(line), "%s cudatraced[%d]: %s\n", stamp, (int)getpid(), text);
    int fd = STDERR_FILENO;
    if (log_path)
        fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (log_path && fd >= 0 &&
        (ct_private_own_fd(fd, log_path, NULL, text, sizeof(text)) != 0 || fchmod(fd, 0600) != 0)) {
        close(fd);
        fd = -1;
    }
    /* A line that cannot be written has nowhere else to go. */
    if (fd < 0 || write(fd, line, (size_t)length) < 0)
        return;
    if (log_path)
        close(fd);
}
