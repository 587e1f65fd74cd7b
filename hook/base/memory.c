/* Determines how much memory is available for rings. Pages in /dev/shm use the machine's memory, and are
 * charged to the control group of the process that allocated them. If a control group exceeds its limit, the
 * kernel kills processes in it. */
#include "bound.h"

#include "clock.h"
#include "descriptor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 4 }; /* a quarter of the total stays free, but at most LEAVES */
#define LEAVES (UINT64_C(4) << 30)

/* The files in /proc and /sys are read again after LOOK_NS. They are read earlier if an eighth of the
 * available memory, or LOOK_BYTES, has been granted since. */
enum { LOOK_PARTS = 8 };
#define LOOK_BYTES (UINT64_C(32) << 20)
#define LOOK_NS    UINT64_C(100000000)

enum { DEPTH_MAX = 12, TEXT_BYTES = 4096 };

/* Returns `available` minus the part of `all` that must stay free. */
static uint64_t spare(uint64_t all, uint64_t available)
{
    const uint64_t leaves = all / PARTS < LEAVES ? all / PARTS : LEAVES;
    return available > leaves ? available - leaves : 0;
}

/* Returns the number after `word`, which must be at the beginning of a line, or 0 if there is no such
 * line. */
static uint64_t number_of(const char *text, const char *word)
{
    const size_t length = strlen(word);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, word, length) == 0)
            return strtoull(line + length, NULL, 10);
    }
    return 0;
}

static uint64_t of_machine(char text[TEXT_BYTES])
{
    if (ct_descriptor_read("/proc/meminfo", text, TEXT_BYTES) == 0 || !strstr(text, "MemAvailable:"))
        return UINT64_MAX;
    return spare(number_of(text, "MemTotal:") * 1024, number_of(text, "MemAvailable:") * 1024);
}

/* The files to read, with names that depend on the control group version. */
struct group_files {
    const char *root, *limit, *used, *cache;
};
static const struct group_files version_2 = { "/sys/fs/cgroup", "memory.max", "memory.current",
                                              "inactive_file " };
static const struct group_files version_1 = { "/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                              "memory.usage_in_bytes", "total_inactive_file " };

static size_t read_file(const struct group_files *files, const char *group, const char *name,
                        char text[TEXT_BYTES])
{
    char path[512];
    const int length = snprintf(path, sizeof(path), "%s%s/%s", files->root, group, name);
    text[0] = '\0';
    return length > 0 && (size_t)length < sizeof(path) ? ct_descriptor_read(path, text, TEXT_BYTES) : 0;
}

/* Returns the number of bytes that one control group may still allocate. Page-cache pages that the kernel can
 * drop count as free. */
static uint64_t of_group(const struct group_files *files, const char *group, char text[TEXT_BYTES])
{
    /* If there is no limit, the file contains "max" instead of a number. */
    if (read_file(files, group, files->limit, text) == 0 || text[0] < '0' || text[0] > '9')
        return UINT64_MAX;
    const uint64_t limit = strtoull(text, NULL, 10);
    if (limit > UINT64_MAX / 4 || read_file(files, group, files->used, text) == 0)
        return UINT64_MAX;
    const uint64_t used = strtoull(text, NULL, 10);
    const uint64_t left = used < limit ? limit - used : 0;
    read_file(files, group, "memory.stat", text);
    return spare(limit, left + number_of(text, files->cache));
}

/* Returns the number of bytes that the process's control group and all its ancestors may still allocate. In a
 * container, /proc may give the group's name on the host, although the control group file system mounted
 * there has the group itself as its root. */
static uint64_t of_groups(char text[TEXT_BYTES])
{
    char group[256] = "";
    if (ct_descriptor_read("/proc/self/cgroup", text, TEXT_BYTES) == 0)
        return UINT64_MAX;
    const struct group_files *files = &version_1;
    const char *line = strstr(text, ":memory:");
    if (line) {
        line += strlen(":memory:");
    } else {
        files = &version_2;
        line = strstr(text, "0::");
        line += line ? strlen("0::") : 0;
    }
    if (line)
        snprintf(group, sizeof(group), "%.*s", (int)strcspn(line, "\n"), line);
    uint64_t least = UINT64_MAX;
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        const uint64_t of_this = of_group(files, group, text);
        least = of_this < least ? of_this : least;
        char *last = strrchr(group, '/');
        if (!last)
            break;
        *last = '\0';
    }
    return least;
}

static uint64_t granted, looked_ns;

int ct_bound_memory(uint64_t bytes, uint64_t whole)
{
    const uint64_t now_ns = ct_monotonic_ns();
    if (bytes > granted || now_ns - looked_ns > LOOK_NS) {
        char text[TEXT_BYTES];
        const uint64_t machine = of_machine(text), groups = of_groups(text);
        const uint64_t left = machine < groups ? machine : groups;
        looked_ns = now_ns;
        granted = 0;
        if (left < whole || left / LOOK_PARTS < bytes)
            return groups < machine ? ENOMEM : ENOSPC;
        granted = left / LOOK_PARTS < LOOK_BYTES ? left / LOOK_PARTS : LOOK_BYTES;
    }
    granted -= bytes;
    return 0;
}
