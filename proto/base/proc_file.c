#include "proc_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool ct_proc_is_short(int error)
{
    return error == -EMFILE || error == -ENFILE || error == -ENOMEM;
}

int ct_proc_read(int32_t pid, const char *file, char *text, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        const int error = errno;
        const bool is_missing = error == ENOENT || error == ESRCH;
        return is_missing && access("/proc/self/stat", F_OK) == 0 ? -ESRCH : -error;
    }
    /* The process may exit between open() and read(), which then fails with ESRCH. */
    const ssize_t n = read(fd, text, bytes - 1);
    const int error = n < 0 ? -errno : 0;
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return error;
}

int ct_proc_stat(int32_t pid, struct ct_proc_stat *stat)
{
    /* Numbers of fields in proc(5). */
    enum { STATE = 3, FLAGS = 9, THREADS = 20, START = 22, EXIT_CODE = 52 };
    enum { EXITING = 0x4, SIGNALED = 0x400 }; /* PF_EXITING and PF_SIGNALED of the kernel */
    char text[1024];
    const int error = ct_proc_read(pid, "stat", text, sizeof(text));
    if (error)
        return error;
    *stat = (struct ct_proc_stat){ 0 };
    uint64_t threads = 0;
    const char *field = strrchr(text, ')'); /* a program's name may contain any character */
    for (int i = STATE; field && (field = strchr(field, ' ')) != NULL; i++) {
        field++;
        if (i == STATE) {
            stat->first_ended = *field == 'Z' || *field == 'X';
            stat->is_stopped = *field == 'T';
        } else if (i == FLAGS) {
            stat->first_ending = stat->first_ended || (strtoul(field, NULL, 10) & (EXITING | SIGNALED)) != 0;
        } else if (i == THREADS) {
            threads = strtoull(field, NULL, 10);
        } else if (i == START) {
            stat->start_ticks = strtoull(field, NULL, 10);
        } else if (i == EXIT_CODE) {
            stat->exit_code = (int32_t)strtol(field, NULL, 10);
        }
    }
    stat->ended = stat->first_ended && threads < 2;
    return stat->start_ticks ? 0 : -EPROTO;
}

/* Returns the signals in a line of /proc/PID/status, or 0 if there is no such line. */
static uint64_t signals_of(const char *status, const char *line)
{
    const char *at = strstr(status, line);
    return at ? strtoull(at + strlen(line), NULL, 16) : 0;
}

int ct_proc_status(int32_t pid, struct ct_proc_status *status)
{
    char text[4096];
    const int error = ct_proc_read(pid, "status", text, sizeof(text));
    if (error)
        return error;
    const char *uid = strstr(text, "\nUid:"), *gid = strstr(text, "\nGid:");
    *status = (struct ct_proc_status){ 0 };
    if (!uid || !gid ||
        sscanf(uid, "\nUid: %u %u %u", &status->real, &status->effective, &status->saved) != 3 ||
        sscanf(gid, "\nGid: %*u %u", &status->group) != 1)
        return -EPROTO;
    status->pending = signals_of(text, "\nSigPnd:") | signals_of(text, "\nShdPnd:");
    char *line = strstr(text, "\nNSpid:");
    if (line) {
        line++;
        line[strcspn(line, "\n")] = '\0';
        const char *last = strrchr(line, '\t');
        status->inner_pid = last ? (int32_t)strtol(last + 1, NULL, 10) : 0;
    }
    return 0;
}
