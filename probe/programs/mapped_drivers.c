#include "mapped_drivers.h"

#include "area.h"
#include "printable.h"
#include "proc.h"
#include "regular_file.h"
#include "segment.h"
#include "visits.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DRIVER "libcuda.so"
#define HOOK   "libcudatrace.so"
#define AREA   "memfd:" CT_AREA_NAME

static_assert(sizeof(struct ct_probe_lane) == 16 && offsetof(struct ct_lane, state) == 0 &&
                  offsetof(struct ct_probe_lane, tid) == offsetof(struct ct_lane, tid),
              "ct_lane");
static_assert(CT_VISIT_STATE_BYTES == offsetof(struct ct_probe_visit_state, request) &&
                  CT_DATA_LEFT - CT_DATA_STATE == offsetof(struct ct_probe_visit_state, left),
              "ct_probe_visit_state");

static bool parse(struct ct_mapped_range *range, char *line)
{
    unsigned long long from, to, offset, inode;
    unsigned int major_number, minor_number;
    int path = 0;
    char rights[5];
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &from, &to, rights, &offset, &major_number,
               &minor_number, &inode, &path) != 7)
        return false;
    const bool is_file = inode != 0 && line[path] == '/';
    *range = (struct ct_mapped_range){
        .from = from,
        .to = to,
        .offset = offset,
        .device = makedev(major_number, minor_number),
        .inode = inode,
        .path = is_file ? line + path : "",
        .is_code = rights[2] == 'x',
    };
    return is_file || range->is_code;
}

int ct_mapped_ranges_each(pid_t pid, void (*take)(const struct ct_mapped_range *range, void *data),
                          void *data)
{
    char path[64], *line = NULL;
    size_t room = 0;
    snprintf(path, sizeof(path), "/proc/%d/maps", ct_proc_thread(pid));
    FILE *maps = fopen(path, "re");
    if (!maps)
        return -errno;
    /* Lines have no fixed limit. If a long path were read in parts, a part could look like another range. */
    while (getline(&line, &room, maps) > 0) {
        struct ct_mapped_range range;
        if (parse(&range, line))
            take(&range, data);
    }
    const int error = ferror(maps) ? -EIO : 0;
    free(line);
    fclose(maps);
    return error;
}

static bool is_named(const char *path, const char *beginning)
{
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, beginning, strlen(beginning)) == 0;
}

/* The name is printed on terminals, and a process may have chosen it. */
static void set_name(char to[256], const char *path)
{
    char *name = ct_printable(path, strlen(path));
    snprintf(to, sizeof(((struct ct_mapped_driver *)NULL)->name), "%s", name ? name : DRIVER);
    free(name);
}

struct search {
    struct ct_mapped_drivers *images;
    pid_t pid;
    /* The last range of a driver, if all ranges since then were adjacent, or NULL. */
    struct ct_mapped_driver *last;
    uint64_t end;     /* the end of those ranges */
    bool is_copied;   /* there is other code after the driver's range */
    ino_t left_inode; /* of the last file that was left out */
};

/* Notes that other code replaces a part of a driver: it is between two ranges of the driver, with no gap. */
static void note_copy(struct search *search, struct ct_mapped_driver *image,
                      const struct ct_mapped_range *range)
{
    if (range->from != search->end)
        search->last = NULL;
    if (image && image == search->last)
        image->is_copied |= search->is_copied;
    if (image) {
        search->last = image;
        search->is_copied = false;
    }
    search->is_copied |= !image && range->is_code;
    search->end = range->to;
}

static void path_of(char *path, size_t bytes, pid_t pid, const struct ct_mapped_range *range)
{
    snprintf(path, bytes, "/proc/%d/map_files/%llx-%llx", ct_proc_thread(pid),
             (unsigned long long)range->from, (unsigned long long)range->to);
}

static bool read_memory(pid_t pid, uint64_t address, void *to, size_t bytes)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/mem", ct_proc_thread(pid));
    const int memory = open(path, O_RDONLY | O_CLOEXEC);
    const bool is_read = memory >= 0 && pread(memory, to, bytes, (off_t)address) == (ssize_t)bytes;
    if (memory >= 0)
        close(memory);
    return is_read;
}

/* A process may have several areas, since `cudatrace attach` creates a new area if it does not recognize the
 * previous one. */
static void note_area(struct ct_mapped_drivers *images, pid_t pid, uint64_t address)
{
    struct ct_area_data data;
    enum ct_hook hook = CT_HOOK_STAYS;
    if (read_memory(pid, address + CT_AREA_DATA, &data, sizeof(data)) && data.magic == CT_AREA_MAGIC &&
        data.visit.version == CT_VISIT_VERSION)
        hook = ct_visit_covers(&(struct ct_probe_visit_state){
                   .state = data.state, .answer = data.answer, .request = data.visit.request })
                   ? CT_HOOK_MAY_LEAVE
                   : CT_HOOK_HAS_LEFT;
    if (hook < images->hook)
        return;
    images->hook = hook;
    images->visit = hook == CT_HOOK_STAYS ? 0 : address;
    images->exec_ns = hook == CT_HOOK_STAYS ? 0 : data.visit.exec_ns;
}

/* Recognises a segment by its contents, since its file may have no name, or be named after another process.
 * Segments from daemons that have since stopped may also be mapped. */
static void note_segment(struct ct_mapped_drivers *images, pid_t pid, const struct ct_mapped_range *range)
{
    struct ct_segment segment;
    if (range->offset != 0 || range->to - range->from != CT_LANE_OFFSET ||
        !read_memory(pid, range->from, &segment, sizeof(segment)) || segment.magic != CT_SEGMENT_MAGIC ||
        segment.version != CT_PROTO_VERSION || atomic_load(&segment.flags) & ~(uint32_t)CT_SEGMENT_KNOWN)
        return;
    path_of(images->segment, sizeof(images->segment), pid, range);
    images->hooks = (struct ct_mapped_segment){
        .device = range->device,
        .inode = range->inode,
        .pid = segment.pid,
        .producer = segment.producer,
        .process_start = segment.process_start,
        .exec_ns = segment.exec_ns,
        .pid_namespace = segment.pid_namespace,
    };
}

/* Returns the driver that the range maps, or NULL. */
static struct ct_mapped_driver *driver_at(struct search *search, const struct ct_mapped_range *range)
{
    struct ct_mapped_drivers *images = search->images;
    if (!is_named(range->path, DRIVER))
        return NULL;
    for (size_t i = 0; i < images->count; i++) {
        if (images->image[i].inode == range->inode && images->image[i].device == range->device)
            return &images->image[i];
    }
    if (images->count == CT_MAPPED_DRIVERS_MAX) {
        /* A file's ranges usually follow one another. */
        images->left_out += range->inode != search->left_inode;
        search->left_inode = range->inode;
        set_name(images->left_name, range->path);
        return NULL;
    }
    struct ct_mapped_driver *image = &images->image[images->count++];
    *image = (struct ct_mapped_driver){ .device = range->device, .inode = range->inode };
    path_of(image->path, sizeof(image->path), search->pid, range);
    set_name(image->name, range->path);
    return image;
}

static void note(const struct ct_mapped_range *range, void *data)
{
    struct search *search = data;
    struct ct_mapped_drivers *images = search->images;
    note_copy(search, driver_at(search, range), range);
    if (!*range->path)
        return;
    if (is_named(range->path, HOOK))
        images->hook = CT_HOOK_STAYS;
    if (is_named(range->path, AREA) && range->offset == CT_AREA_CODE)
        note_area(images, search->pid, range->from);
    note_segment(images, search->pid, range);
}

int ct_mapped_drivers_find(struct ct_mapped_drivers *images, pid_t pid)
{
    *images = (struct ct_mapped_drivers){ 0 };
    return ct_mapped_ranges_each(pid, note, &(struct search){ .images = images, .pid = pid });
}

/* ---- one file ---- */

struct own_range {
    const void *address;
    struct ct_mapped_driver *image;
};

static void identify(const struct ct_mapped_range *range, void *data)
{
    const struct own_range *own = data;
    if (range->from != (uintptr_t)own->address)
        return;
    own->image->device = range->device;
    own->image->inode = range->inode;
}

/* Maps the file to find its device and inode as the kernel lists them in /proc/PID/maps. On overlays and on
 * btrfs, stat() reports another device. The memory is not read. */
static int identify_file(struct ct_mapped_driver *image, int fd)
{
    void *address = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
    if (address == MAP_FAILED)
        return -errno;
    image->inode = 0;
    const int error =
        ct_mapped_ranges_each(getpid(), identify, &(struct own_range){ .address = address, .image = image });
    munmap(address, 1);
    return error ? error : image->inode ? 0 : -ENODEV;
}

int ct_mapped_driver_open(struct ct_mapped_driver *file, const char *path)
{
    struct stat status;
    const int fd = ct_regular_file_open(path, &status);
    if (fd < 0)
        return fd;
    *file = (struct ct_mapped_driver){ 0 };
    snprintf(file->path, sizeof(file->path), "/proc/self/fd/%d", fd);
    set_name(file->name, path);
    const int error = identify_file(file, fd);
    if (!error)
        return fd;
    close(fd);
    return error;
}
