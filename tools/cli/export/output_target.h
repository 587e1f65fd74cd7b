/* Resolves a path. It walks the path one component at a time, so that it follows no link that another user
 * may have put there. Called by output.c. */
#ifndef CT_OUTPUT_TARGET_H
#define CT_OUTPUT_TARGET_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

struct ct_target {
    int folder;              /* O_PATH */
    int descriptor;          /* our own descriptor, if the path names one in /dev/fd; else -1 */
    char name[NAME_MAX + 1]; /* in the folder; not a link unless `is_magic` */
    bool exists;
    bool is_magic;      /* a link in /proc whose text is not its real target */
    struct stat status; /* status of the file, if it exists; with `is_magic`, status of the link's target */
    struct stat around; /* status of the folder */
};

/* Returns 0 or -errno. -EISDIR: the path ends in a slash. -EACCES with `why` set: another user may have put
 * the file or link there. */
int ct_target_find(const char *path, struct ct_target *target, const char **why);
/* Must be called after a failure, too. */
void ct_target_leave(struct ct_target *target);

#endif
