/* Finds the libcuda files that a process has mapped, and whether the hook records the process. */
#ifndef CT_PROBE_MAPPED_DRIVERS_H
#define CT_PROBE_MAPPED_DRIVERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { CT_MAPPED_DRIVERS_MAX = 64 }; /* per process; further ones are counted */

struct ct_mapped_driver {
    dev_t device;
    ino_t inode;
    /* A path in /proc/PID/map_files, which can be opened even if the process is in another mount namespace,
     * or the file has been deleted. */
    char path[64];
    /* Some of its code is in other memory, where the kernel sets no breakpoints. Programs copy code to huge
     * pages at the same addresses. */
    bool is_copied;
    char name[256]; /* the path in the process's own mount namespace, printable, cut to fit */
};

enum ct_hook {
    CT_HOOK_NONE,
    CT_HOOK_HAS_LEFT,  /* a visit (visit.h) is over */
    CT_HOOK_MAY_LEAVE, /* a visit records the process, or is about to */
    CT_HOOK_STAYS,     /* the process was started with the hook, or its visit is unknown */
};

/* The segment that the hook is writing, as described by the segment's header. */
struct ct_mapped_segment {
    dev_t device;
    ino_t inode;
    int32_t pid; /* 0: there is none */
    int32_t producer;
    uint64_t process_start, exec_ns, pid_namespace;
};

struct ct_mapped_drivers {
    struct ct_mapped_driver image[CT_MAPPED_DRIVERS_MAX];
    size_t count;
    size_t left_out;     /* further libcuda files, */
    char left_name[256]; /* and the path of one of them, as in struct ct_mapped_driver */
    enum ct_hook hook;
    uint64_t visit;   /* address of CT_AREA_CODE, 0 if there was no visit */
    uint64_t exec_ns; /* of the visiting hook's segments (struct ct_segment), 0 for none */
    char segment[64]; /* path of that segment, "" for none */
    struct ct_mapped_segment hooks;
};

static inline bool ct_mapped_hook_records(const struct ct_mapped_drivers *images)
{
    return images->hook == CT_HOOK_MAY_LEAVE || images->hook == CT_HOOK_STAYS;
}

/* A range of addresses that maps a file or contains code, as listed in a line of /proc/PID/maps. */
struct ct_mapped_range {
    uint64_t from, to; /* addresses */
    uint64_t offset;   /* of `from` in the file */
    dev_t device;
    ino_t inode;
    const char *path; /* valid during the call of `take`; "" if the range maps no file */
    bool is_code;
};
/* Calls `take` for each range that maps a file or contains code, by address. Returns 0 or -errno. */
int ct_mapped_ranges_each(pid_t pid, void (*take)(const struct ct_mapped_range *range, void *data),
                          void *data);

/* Opens the file at `path`, and describes it. Its new path, below /proc/self/fd, names this file until the
 * descriptor is closed, even if a process exchanges what it has mapped. The device and inode are those that
 * /proc/PID/maps shows. Returns the descriptor or -errno; see ct_regular_file_open(). */
int ct_mapped_driver_open(struct ct_mapped_driver *file, const char *path);

/* Finds the mapped libcuda files, and checks for the hook. Returns 0 or -errno. */
int ct_mapped_drivers_find(struct ct_mapped_drivers *images, pid_t pid);

#endif
