#include "program.h"

#include "descriptor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Reads a file in /proc into `text`, replacing the NULs between arguments with spaces. */
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

/* The name of a process's directory in /proc. If /proc belongs to another pid namespace, only `self`
 * certainly refers to the calling process. */
struct folder {
    char name[16];
};
static struct folder folder_of(int32_t pid, bool is_own)
{
    struct folder folder = { "self" };
    if (!is_own)
        snprintf(folder.name, sizeof(folder.name), "%d", pid);
    return folder;
}

struct stat_file {
    char text[1024];
};

/* Reads the first thread's file, which contains the start time of the process, because qemu emulates
 * /proc/self/stat with a different start time. */
static void read_stat(struct stat_file *stat, const char *process, int32_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%s/task/%d/stat", process, pid);
    read_proc(path, stat->text, sizeof(stat->text));
}

/* Returns field `number`, 3 or more, with the space before it, or "". Counts from the last ')', since a
 * program's name may contain spaces. */
static const char *stat_field(const struct stat_file *stat, int number)
{
    const char *field = strrchr(stat->text, ')');
    for (int i = 2; field && i < number; i++)
        field = strchr(field + 1, ' ');
    return field ? field : "";
}

static uint64_t start_ticks(const char *process, int32_t pid)
{
    struct stat_file stat;
    read_stat(&stat, process, pid);
    return strtoull(stat_field(&stat, 22), NULL, 10);
}

uint32_t ct_program_threads(int32_t pid)
{
    struct stat_file stat;
    read_stat(&stat, folder_of(pid, true).name, pid);
    const uint32_t count = (uint32_t)strtoul(stat_field(&stat, 20), NULL, 10);
    const bool has_first = strncmp(stat_field(&stat, 3), " Z", 2) != 0;
    return count > 0 && !has_first ? count - 1 : count;
}

int ct_program_first_status(int32_t pid)
{
    struct stat_file stat;
    read_stat(&stat, folder_of(pid, true).name, pid);
    const bool has_exited = strncmp(stat_field(&stat, 3), " Z", 2) == 0;
    return has_exited ? (int)(strtoul(stat_field(&stat, 52), NULL, 10) >> 8 & 0xff) : 0;
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

uint64_t ct_program_start_ticks(int32_t pid)
{
    return start_ticks(folder_of(pid, true).name, pid);
}

/* Start times in /proc count from boot, and include time in suspend. The two clocks are not read at exactly
 * the same moment, so their difference is truncated to milliseconds to make the result reproducible. */
uint64_t ct_program_start_ns(uint64_t ticks)
{
    enum { TO_NS = 1000000 };
    const uint64_t tick_ns = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
    const uint64_t awake_ns = clock_ns(CLOCK_MONOTONIC);
    const uint64_t suspended_ns = (clock_ns(CLOCK_BOOTTIME) - awake_ns) / TO_NS * TO_NS;
    const uint64_t start_ns = ticks * tick_ns;
    return start_ns > suspended_ns && start_ns - suspended_ns < awake_ns ? start_ns - suspended_ns : 1;
}

/* Reads the process's files first, since qemu emulates only those. If they are empty because the first thread
 * has exited, reads the calling thread's files. */
void ct_program_describe(struct ct_program *program, int32_t pid, bool is_own)
{
    char path[64];
    const struct folder process = folder_of(pid, is_own);
    program->start_ticks = start_ticks(process.name, pid);
    program->pid_namespace = pid_namespace();
    snprintf(path, sizeof(path), "/proc/%s/exe", process.name);
    ssize_t n = readlink(path, program->exe, sizeof(program->exe) - 1);
    if (n <= 0 && is_own) {
        snprintf(path, sizeof(path), "/proc/self/task/%d/exe", (int)syscall(SYS_gettid));
        n = readlink(path, program->exe, sizeof(program->exe) - 1);
    }
    program->exe[n > 0 ? n : 0] = '\0';
    snprintf(path, sizeof(path), "/proc/%s/cmdline", process.name);
    read_proc(path, program->cmdline, sizeof(program->cmdline));
    if (!program->cmdline[0] && is_own) {
        snprintf(path, sizeof(path), "/proc/self/task/%d/cmdline", (int)syscall(SYS_gettid));
        read_proc(path, program->cmdline, sizeof(program->cmdline));
    }
}
