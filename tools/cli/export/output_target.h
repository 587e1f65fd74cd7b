/* Finds what a path leads to. It walks the path one component at a time, so that it follows no link that
 * another user may have put there. Called by output.c. */
#ifndef CT_OUTPUT_TARGET_H
#define CT_OUTPUT_TARGET_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

struct ct_target {
    int folder;              /* O_PATH */
    int descriptor;          /* our own descriptor, where the path names one in /dev/fd; else -1 */
    char name[NAME_MAX + 1]; /* in the folder; no link, but for one that `is_magic` */
    bool exists;
    bool is_magic;      /* a link in /proc that leads where its text does not say */
    struct stat status; /* of the file, if it exists; of the file behind a link that `is_magic` */
    struct stat around; /* of the folder */
};

/* 0 or -errno, -EISDIR for a path that ends in a slash; -EACCES, and `why`, for what is left alone. */
int ct_target_find(const char *path, struct ct_target *target, const char **why);
/* Either way. */
void ct_target_leave(struct ct_target *target);

#endif
