#include "process_memory.h"

#include "proc.h"
#include "room.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Parses a hexadecimal number that is followed by the given character. */
static bool take_number(char **at, char behind, uint64_t *number)
{
    char *end;
    *number = strtoull(*at, &end, 16);
    const bool is_number = end != *at && *end == behind;
    *at = end + is_number;
    return is_number;
}

/* Parses a line such as "7f12…-7f13… r-xp 00000000 08:02 135522   /usr/lib/libc.so.6". Avoids sscanf(), which
 * is too slow for thousands of lines. */
static bool parse(char *line, struct ct_mapping *mapping)
{
    enum { RIGHTS = 5 };
    *mapping = (struct ct_mapping){ 0 };
    if (!take_number(&line, '-', &mapping->begin) || !take_number(&line, ' ', &mapping->end) ||
        strnlen(line, RIGHTS) < RIGHTS)
        return false;
    mapping->is_readable = line[0] == 'r';
    mapping->is_writable = line[1] == 'w';
    mapping->is_executable = line[2] == 'x';
    line += RIGHTS;
    if (!take_number(&line, ' ', &mapping->offset))
        return false;
    for (int fields = 2; fields > 0; fields--) { /* the device and the inode */
        line = strchr(line, ' ');
        if (!line)
            return false;
        while (*line == ' ')
            line++;
    }
    mapping->path = line;
    return true;
}

/* ---- files of a thread ---- */

static char *read_maps(const struct ct_memory *memory)
{
    char file[32];
    snprintf(file, sizeof(file), "task/%d/maps", (int)memory->thread);
    return ct_proc_file(memory->pid, file, NULL);
}

static int open_memory(pid_t pid, pid_t thread)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/mem", (int)pid, (int)thread);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Returns the number of bytes read, or -errno. */
static ssize_t read_program(pid_t pid, pid_t thread, uint64_t program[CT_PROGRAM_WORDS])
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/auxv", (int)pid, (int)thread);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    memset(program, 0, CT_PROGRAM_WORDS * sizeof(*program));
    const ssize_t n = read(fd, program, CT_PROGRAM_WORDS * sizeof(*program));
    const ssize_t result = n < 0 ? -errno : n;
    close(fd);
    return result;
}

/* ---- mappings ---- */

int ct_memory_look(struct ct_memory *memory)
{
    size_t room = 0;
    free(memory->mappings);
    free(memory->text);
    memory->mappings = NULL;
    memory->count = 0;
    memory->text = read_maps(memory);
    if (!memory->text) { /* the thread has exited */
        memory->thread = ct_proc_thread(memory->pid);
        memory->text = read_maps(memory);
    }
    if (!memory->text)
        return -errno;
    for (char *line = memory->text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        struct ct_mapping mapping;
        *end = '\0';
        if (!parse(line, &mapping))
            continue;
        if (!ct_make_room(&memory->mappings, memory->count, &room, sizeof(mapping)))
            return -ENOMEM;
        memory->mappings[memory->count++] = mapping;
    }
    return memory->count > 0 ? 0 : -ENOENT;
}

int ct_memory_open(struct ct_memory *memory, pid_t pid)
{
    struct ct_proc_stat life;
    *memory = (struct ct_memory){ .pid = pid, .fd = -1, .process = (int)syscall(SYS_pidfd_open, pid, 0) };
    int error = ct_proc_stat(pid, &life);
    if (!error) {
        memory->start_ticks = life.start_ticks;
        memory->thread = ct_proc_thread(pid);
        memory->fd = open_memory(pid, memory->thread);
        error = memory->fd < 0 ? memory->fd : ct_memory_look(memory);
    }
    if (!error && read_program(pid, memory->thread, memory->program) <= 0)
        error = -ENOENT;
    if (error)
        ct_memory_close(memory);
    return error;
}

void ct_memory_close(struct ct_memory *memory)
{
    if (memory->fd >= 0)
        close(memory->fd);
    if (memory->process >= 0)
        close(memory->process);
    free(memory->mappings);
    free(memory->text);
    *memory = (struct ct_memory){ .fd = -1, .process = -1 };
}

/* ---- accesses ---- */

bool ct_memory_read(const struct ct_memory *memory, uint64_t address, void *to, size_t bytes)
{
    return address <= INT64_MAX && pread(memory->fd, to, bytes, (off_t)address) == (ssize_t)bytes;
}

bool ct_memory_read_near(struct ct_memory_window *window, uint64_t address, void *to, size_t bytes)
{
    const uint64_t behind = address - window->begin;
    if (behind > window->count || bytes > window->count - behind) {
        const struct ct_mapping *mapping = ct_memory_at(window->memory, address);
        const uint64_t rest = mapping ? mapping->end - address : 0;
        window->begin = address;
        window->count = rest < sizeof(window->bytes) ? (size_t)rest : sizeof(window->bytes);
        if (bytes > window->count || !ct_memory_read(window->memory, address, window->bytes, window->count)) {
            window->count = 0;
            return ct_memory_read(window->memory, address, to, bytes);
        }
    }
    memcpy(to, window->bytes + (address - window->begin), bytes);
    return true;
}

bool ct_memory_write(const struct ct_memory *memory, uint64_t address, const void *from, size_t bytes)
{
    return address <= INT64_MAX && pwrite(memory->fd, from, bytes, (off_t)address) == (ssize_t)bytes;
}

const struct ct_mapping *ct_memory_at(const struct ct_memory *memory, uint64_t address)
{
    size_t low = 0, high = memory->count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (memory->mappings[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < memory->count && memory->mappings[low].begin <= address ? &memory->mappings[low] : NULL;
}

/* ---- identity ---- */

/* Returns whether the pid still belongs to the process. */
static bool is_process(const struct ct_memory *memory)
{
    struct ct_proc_stat life;
    struct pollfd end = { .fd = memory->process, .events = POLLIN };
    return poll(&end, 1, 0) == 0 && ct_proc_stat(memory->pid, &life) == 0 && !life.ended &&
           life.start_ticks == memory->start_ticks;
}

/* Reads the random bytes that execve() has put into the program's memory. */
static bool read_random(const struct ct_memory *memory, int fd, uint64_t random[2])
{
    size_t i = 0;
    while (i + 2 < CT_PROGRAM_WORDS && memory->program[i] != AT_RANDOM && memory->program[i] != AT_NULL)
        i += 2;
    const uint64_t at = memory->program[i] == AT_RANDOM ? memory->program[i + 1] : UINT64_MAX;
    return at <= INT64_MAX && pread(fd, random, 2 * sizeof(*random), (off_t)at) == 2 * sizeof(*random);
}

bool ct_memory_is_there(const struct ct_memory *memory)
{
    uint64_t program[CT_PROGRAM_WORDS];
    char byte;
    /* Reading memory that no process uses any more returns 0 instead of an error. */
    if (memory->count == 0 || pread(memory->fd, &byte, 1, (off_t)memory->mappings[0].begin) == 0 ||
        !is_process(memory))
        return false;
    /* A process that is no longer dumpable hides its vector, and a thread that has exited has none. */
    return read_program(memory->pid, memory->thread, program) <= 0 ||
           memcmp(program, memory->program, sizeof(program)) == 0;
}

bool ct_memory_take_from(const struct ct_memory *memory, pid_t thread)
{
    uint64_t program[CT_PROGRAM_WORDS], random[2], examined[2];
    /* While the thread is stopped, neither its memory nor the process's pid can change. */
    const int fd = open_memory(memory->pid, thread);
    if (fd < 0)
        return false;
    const bool is_same = is_process(memory) && read_program(memory->pid, thread, program) > 0 &&
                         memcmp(program, memory->program, sizeof(program)) == 0 &&
                         read_random(memory, fd, random) && read_random(memory, memory->fd, examined) &&
                         memcmp(random, examined, sizeof(random)) == 0 &&
                         dup3(fd, memory->fd, O_CLOEXEC) >= 0;
    close(fd);
    return is_same;
}

pid_t ct_memory_sharer(const struct ct_memory *memory)
{
    pid_t found = 0;
    DIR *processes = opendir("/proc");
    for (struct dirent *entry; processes && found == 0 && (entry = readdir(processes)) != NULL;) {
        const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && pid != memory->pid && syscall(SYS_kcmp, memory->thread, pid, KCMP_VM, 0, 0) == 0)
            found = pid;
    }
    if (processes)
        closedir(processes);
    return found;
}

bool ct_thread_runs_code(pid_t pid, pid_t thread)
{
    enum {
        FLAGS = 9,
        IO_WORKER = 0x10,
        USER_WORKER = 0x4000
    }; /* PF_IO_WORKER, PF_USER_WORKER of the kernel */
    char file[32], text[1024];
    snprintf(file, sizeof(file), "task/%d/stat", (int)thread);
    const char *field = ct_proc_read(pid, file, text, sizeof(text)) == 0 ? strrchr(text, ')') : NULL;
    if (!field || strncmp(field, ") Z", 3) == 0 || strncmp(field, ") X", 3) == 0)
        return false;
    for (int i = 2; field && i < FLAGS; i++)
        field = strchr(field + 1, ' ');
    return field && !(strtoul(field, NULL, 10) & (IO_WORKER | USER_WORKER));
}

int ct_thread_filter_mode(pid_t pid, pid_t thread)
{
    char file[32], text[4096];
    int mode = 0;
    snprintf(file, sizeof(file), "task/%d/status", (int)thread);
    const char *at = ct_proc_read(pid, file, text, sizeof(text)) == 0 ? strstr(text, "\nSeccomp:") : NULL;
    return at && sscanf(at, "\nSeccomp: %d", &mode) == 1 ? mode : 0;
}
