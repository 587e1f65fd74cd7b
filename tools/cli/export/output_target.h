/* Resolves the path of an output file. Walks the path one component at a time, so that no link planted by
 * another user is followed. Called by output.c. */
#ifndef CT_OUTPUT_TARGET_H
#define CT_OUTPUT_TARGET_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

struct ct_target {
    int folder;              /* O_PATH */
    int descriptor;          /* our own descriptor, if the path names one in /dev/fd, or -1 */
    char name[NAME_MAX + 1]; /* the name in the folder; not a link unless `is_magic` */
    bool exists;
    bool is_magic;      /* a link in /proc whose text is not its real target */
    struct stat status; /* status of the file if it exists, or of the link's target if `is_magic` */
    struct stat around; /* status of the folder */
};

/* Returns 0 or -errno, such as -EISDIR if the path ends in a slash. If another user may have planted the file
 * or link, returns -EACCES and sets *why. */
int ct_target_find(const char *path, struct ct_target *target, const char **why);
/* Releases the target. Must also be called after ct_target_find() has failed. */
void ct_target_leave(struct ct_target *target);

#endif
