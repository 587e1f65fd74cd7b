#include "program.h"

#include "descriptor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Reads a file of /proc into `text`; NULs between arguments become spaces. */
static void read_proc(const char *path, char *text, size_t bytes)
{
    size_t n = ct_descriptor_read(path, text, bytes);
    while (n > 0 && (text[n - 1] == '\0' || text[n - 1] == '\n'))
        n--;
    text[n] = '\0';
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\0')
            text[i] = ' ';
    }
}

/* The link reads "pid:[4026531836]". */
static uint64_t pid_namespace(void)
{
    char link[64];
    const ssize_t n = readlink("/proc/self/ns/pid", link, sizeof(link) - 1);
    link[n > 0 ? n : 0] = '\0';
    const char *number = strchr(link, '[');
    return number ? strtoull(number + 1, NULL, 10) : 0;
}

/* Field 22 of /proc/self/stat, counted from behind the last ')': a program's name may hold spaces. Read as
 * that of the first thread, which started with the process: qemu makes /proc/self/stat up, of another time.
 */
static uint64_t process_start(int32_t pid)
{
    char path[64], stat[1024];
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", pid);
    read_proc(path, stat, sizeof(stat));
    char *field = strrchr(stat, ')');
    for (int i = 0; field && i < 20; i++)
        field = strchr(field + 1, ' ');
    return field ? strtoull(field, NULL, 10) : 0;
}

/* Asks /proc about the process, and where that has nothing, since the first thread has ended, about the
 * calling thread. Never about the thread first: qemu makes up the process's entry alone. */
void ct_program_describe(struct ct_segment *segment, int32_t pid)
{
    char path[64];
    segment->process_start = process_start(pid);
    segment->pid_namespace = pid_namespace();
    ssize_t n = readlink("/proc/self/exe", segment->exe, sizeof(segment->exe) - 1);
    if (n <= 0) {
        snprintf(path, sizeof(path), "/proc/self/task/%d/exe", (int)syscall(SYS_gettid));
        n = readlink(path, segment->exe, sizeof(segment->exe) - 1);
    }
    segment->exe[n > 0 ? n : 0] = '\0';
    read_proc("/proc/self/cmdline", segment->cmdline, sizeof(segment->cmdline));
    if (!segment->cmdline[0]) {
        snprintf(path, sizeof(path), "/proc/self/task/%d/cmdline", (int)syscall(SYS_gettid));
        read_proc(path, segment->cmdline, sizeof(segment->cmdline));
    }
}
