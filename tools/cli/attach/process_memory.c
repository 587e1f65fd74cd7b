#include "process_memory.h"

#include "proc.h"
#include "room.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

int ct_memory_look(struct ct_memory *memory)
{
    size_t room = 0;
    free(memory->mappings);
    free(memory->text);
    memory->mappings = NULL;
    memory->count = 0;
    memory->text = ct_proc_file(memory->thread, "maps", NULL);
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
    char path[64];
    *memory = (struct ct_memory){ .pid = pid, .thread = ct_proc_thread(pid) };
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)memory->thread);
    memory->fd = open(path, O_RDWR | O_CLOEXEC);
    const int error = memory->fd < 0 ? -errno : ct_memory_look(memory);
    if (error)
        ct_memory_close(memory);
    return error;
}

void ct_memory_close(struct ct_memory *memory)
{
    if (memory->fd >= 0)
        close(memory->fd);
    free(memory->mappings);
    free(memory->text);
    *memory = (struct ct_memory){ .fd = -1 };
}

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

bool ct_memory_is_there(const struct ct_memory *memory)
{
    /* Reading memory that no process uses any more returns 0 instead of an error. */
    char byte;
    return memory->count > 0 && (pread(memory->fd, &byte, 1, (off_t)memory->mappings[0].begin) != 0);
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
