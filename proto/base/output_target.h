/* Resolves the path of an output file. Walks the path one component at a time, so that no link planted by
 * another user is followed. In a folder that all users can write to, only links of root, of this user and of
 * the folder's owner are followed. own_path.h protects the resolved path against later changes. */
#ifndef CT_OUTPUT_TARGET_H
#define CT_OUTPUT_TARGET_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

struct ct_output_target {
    int folder;              /* O_PATH */
    int descriptor;          /* our own descriptor, if the path names one in /dev/fd, or -1 */
    char name[NAME_MAX + 1]; /* the name in the folder; not a link unless `is_magic` */
    bool exists;
    bool is_magic;      /* a link in /proc whose text is not its real target */
    struct stat status; /* status of the file if it exists, or of the link's target if `is_magic` */
    struct stat around; /* status of the folder */
};

/* Returns 0 or -errno, such as -EISDIR if the path ends in a slash. If another user may have planted the file
 * or link, returns -EACCES and sets *why to a sentence that names it and its owner. The sentence is valid
 * until this thread's next call. */
int ct_output_target_find(const char *path, struct ct_output_target *target, const char **why);
/* Like ct_output_target_find(), but neither follows nor checks the last component. */
int ct_output_target_find_folder(const char *path, struct ct_output_target *target, const char **why);
/* Opens the file that ct_output_target_find() has found, or creates it if it found none and `flags` contain
 * O_CREAT. Returns a descriptor, -ESTALE if another program has created or replaced the file since, or
 * another -errno. */
int ct_output_target_open_found(const struct ct_output_target *target, int flags, mode_t mode);
/* Finds the target and opens it like open(). Returns a descriptor or -errno, and sets *why as
 * ct_output_target_find() does. */
int ct_output_target_open(const char *path, int flags, mode_t mode, const char **why);
/* Releases the target. Must also be called after the target was not found. */
void ct_output_target_leave(struct ct_output_target *target);

#endif
