#include "code_check.h"

#include "interrupted.h"
#include "proc.h"
#include "processes.h"
#include "room.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct comparison {
    const struct ct_mapped_driver *file;
    const struct ct_targets *targets;
    int in_file, in_memory;
    bool maps_it, differs;
};

/* Returns whether the instruction in memory differs from the instruction in the file. A breakpoint set by
 * another probe is not a difference, since the kernel permits several probes on one instruction. */
static bool differs_at(const struct comparison *comparison, uint64_t address, uint64_t offset)
{
    enum { LONGEST_INSTRUCTION = 15, BREAKPOINT = 0xcc };
    uint8_t expected[LONGEST_INSTRUCTION], found[LONGEST_INSTRUCTION];
    const ssize_t bytes = pread(comparison->in_file, expected, sizeof(expected), (off_t)offset);
    if (bytes <= 0 || pread(comparison->in_memory, found, (size_t)bytes, (off_t)address) != bytes)
        return true;
    return (found[0] != expected[0] && found[0] != BREAKPOINT) ||
           memcmp(found + 1, expected + 1, (size_t)bytes - 1) != 0;
}

static void compare(const struct ct_mapped_range *range, void *data)
{
    struct comparison *comparison = data;
    if (range->inode != comparison->file->inode || range->device != comparison->file->device)
        return;
    comparison->maps_it = true;
    for (uint32_t i = 0; i < comparison->targets->count && !comparison->differs; i++) {
        const uint64_t offset = comparison->targets->offset[i];
        if (offset >= range->offset && offset - range->offset < range->to - range->from)
            comparison->differs = differs_at(comparison, range->from + offset - range->offset, offset);
    }
}

/* Returns whether the error means that the process has ended. After any other error, the process's code
 * cannot be compared, and probes might crash the process. */
static bool has_ended(int error)
{
    return error == -ENOENT || error == -ESRCH;
}

static int check_process(struct ct_code_check *check, struct comparison *comparison, pid_t pid)
{
    char path[64];
    if (!ct_make_room(&check->lock, check->count, &check->room, sizeof(int)))
        return -ENOMEM;
    const int lock = ct_proc_lock(pid);
    if (lock == -EWOULDBLOCK)
        return -EBUSY;
    if (lock < 0)
        return has_ended(lock) ? 0 : lock;
    snprintf(path, sizeof(path), "/proc/%d/mem", pid);
    comparison->in_memory = open(path, O_RDONLY | O_CLOEXEC);
    comparison->maps_it = comparison->differs = false;
    if (comparison->in_memory < 0) {
        const int error = -errno;
        close(lock);
        return has_ended(error) ? 0 : error;
    }
    ct_mapped_ranges_each(pid, compare, comparison);
    close(comparison->in_memory);
    if (comparison->maps_it)
        check->lock[check->count++] = lock;
    else
        close(lock);
    return comparison->differs ? -ETXTBSY : 0;
}

/* Takes no lock on the process, since only processes that map the file are locked. */
static bool maps_file(const struct ct_mapped_driver *file, pid_t pid)
{
    struct ct_mapped_drivers images;
    if (ct_mapped_drivers_find(&images, pid) != 0)
        return false;
    for (size_t i = 0; i < images.count; i++) {
        if (images.image[i].inode == file->inode && images.image[i].device == file->device)
            return true;
    }
    return false;
}

int ct_code_check_begin(struct ct_code_check *check, const struct ct_mapped_driver *file,
                        const struct ct_targets *targets, pid_t pid, pid_t *culprit)
{
    struct comparison comparison = { .file = file, .targets = targets };
    *check = (struct ct_code_check){ 0 };
    *culprit = 0;
    comparison.in_file = open(file->path, O_RDONLY | O_CLOEXEC);
    if (comparison.in_file < 0)
        return -errno;
    struct ct_processes processes = { 0 };
    struct ct_process only = { .pid = pid };
    if (pid != 0)
        processes = (struct ct_processes){ .process = &only, .count = 1 };
    else
        ct_processes_look(&processes);
    int error = 0;
    for (size_t i = 0; !error && i < processes.count; i++) {
        *culprit = processes.process[i].pid;
        if (ct_is_interrupted())
            error = -EINTR;
        else if (maps_file(file, *culprit))
            error = check_process(check, &comparison, *culprit);
    }
    if (pid == 0)
        ct_processes_free(&processes);
    close(comparison.in_file);
    if (!error)
        *culprit = 0;
    return error;
}

void ct_code_check_end(struct ct_code_check *check)
{
    for (size_t i = 0; i < check->count; i++)
        close(check->lock[i]);
    free(check->lock);
    *check = (struct ct_code_check){ 0 };
}
