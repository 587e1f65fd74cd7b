/* The files of libcuda that a process has mapped. */
#ifndef CT_PROBE_MAPPED_DRIVERS_H
#define CT_PROBE_MAPPED_DRIVERS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { CT_MAPPED_DRIVERS_MAX = 8 }; /* per process; further ones are ignored */

struct ct_mapped_driver {
    dev_t device;
    ino_t inode;
    /* A path in /proc/PID/map_files. It opens the file even if the process is in another mount namespace, or
     * the file is deleted. */
    char path[PATH_MAX];
    char name[256]; /* the path in the process's own mount namespace, cut to fit */
};

struct ct_mapped_drivers {
    struct ct_mapped_driver image[CT_MAPPED_DRIVERS_MAX];
    size_t count;
    bool has_hook; /* libcudatrace.so is mapped */
};

/* A line of /proc/PID/maps that maps a file. */
struct ct_mapped_range {
    uint64_t from, to; /* addresses */
    uint64_t offset;   /* of `from` in the file */
    dev_t device;
    ino_t inode;
    const char *path; /* valid during the call of `take` */
};
/* Calls `take` for each range that maps a file. Returns 0 or -errno. */
int ct_mapped_ranges_each(pid_t pid, void (*take)(const struct ct_mapped_range *range, void *data),
                          void *data);

/* Finds the files of libcuda that the process has mapped. Returns 0 or -errno. */
int ct_mapped_drivers_find(struct ct_mapped_drivers *images, pid_t pid);

#endif
