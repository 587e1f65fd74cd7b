#include "mapped_drivers.h"

#include "proc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#define DRIVER    "libcuda.so"
#define HOOK      "libcudatrace.so"
#define HOOK_FILE "memfd:cudatrace"

static bool parse(struct ct_mapped_range *range, char *line)
{
    unsigned long long from, to, offset, inode;
    unsigned int major_number, minor_number;
    int path = 0;
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%llx-%llx %*s %llx %x:%x %llu %n", &from, &to, &offset, &major_number, &minor_number,
               &inode, &path) != 6 ||
        inode == 0)
        return false;
    *range = (struct ct_mapped_range){
        .from = from,
        .to = to,
        .offset = offset,
        .device = makedev(major_number, minor_number),
        .inode = inode,
        .path = line + path,
    };
    return range->path[0] == '/';
}

int ct_mapped_ranges_each(pid_t pid, void (*take)(const struct ct_mapped_range *range, void *data),
                          void *data)
{
    char path[64], line[PATH_MAX + 128];
    snprintf(path, sizeof(path), "/proc/%d/maps", ct_proc_thread(pid));
    FILE *maps = fopen(path, "re");
    if (!maps)
        return -errno;
    while (fgets(line, sizeof(line), maps)) {
        struct ct_mapped_range range;
        if (parse(&range, line))
            take(&range, data);
    }
    const int error = ferror(maps) ? -EIO : 0;
    fclose(maps);
    return error;
}

static bool is_named(const char *path, const char *beginning)
{
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, beginning, strlen(beginning)) == 0;
}

struct search {
    struct ct_mapped_drivers *images;
    pid_t pid;
};

static void note(const struct ct_mapped_range *range, void *data)
{
    const struct search *search = data;
    struct ct_mapped_drivers *images = search->images;
    images->has_hook |= is_named(range->path, HOOK) || is_named(range->path, HOOK_FILE);
    if (!is_named(range->path, DRIVER) || images->count == CT_MAPPED_DRIVERS_MAX)
        return;
    for (size_t i = 0; i < images->count; i++) {
        if (images->image[i].inode == range->inode && images->image[i].device == range->device)
            return;
    }
    struct ct_mapped_driver *image = &images->image[images->count++];
    *image = (struct ct_mapped_driver){ .device = range->device, .inode = range->inode };
    snprintf(image->path, sizeof(image->path), "/proc/%d/map_files/%llx-%llx", ct_proc_thread(search->pid),
             (unsigned long long)range->from, (unsigned long long)range->to);
    snprintf(image->name, sizeof(image->name), "%s", range->path);
}

int ct_mapped_drivers_find(struct ct_mapped_drivers *images, pid_t pid)
{
    *images = (struct ct_mapped_drivers){ 0 };
    return ct_mapped_ranges_each(pid, note, &(struct search){ images, pid });
}
