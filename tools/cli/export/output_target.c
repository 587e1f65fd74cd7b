#include "output_target.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { LINKS_MAX = 40 }; /* the kernel's limit */

/* Returns whether another user may have put the file into a shared folder in order to receive our output. The
 * kernel itself refuses such files if fs.protected_symlinks, protected_fifos and protected_regular are set,
 * which cannot be relied on. */
static bool is_laid_by_others(const struct stat *around, const struct stat *status)
{
    const mode_t shared = S_ISLNK(status->st_mode) ? S_IWOTH : S_IWOTH | S_IWGRP;
    return (around->st_mode & S_ISVTX) && (around->st_mode & shared) && status->st_uid != geteuid() &&
           status->st_uid != around->st_uid;
}

static bool is_in_proc(int folder)
{
    struct statfs system;
    return fstatfs(folder, &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

/* Returns whether the folder is /proc/self/fd, under any name. */
static bool holds_descriptors(int folder)
{
    char link[32], path[64], wanted[32];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", folder);
    snprintf(wanted, sizeof(wanted), "/proc/%d/", (int)getpid());
    const ssize_t length = readlink(link, path, sizeof(path) - 1);
    if (length < 0)
        return false;
    path[length] = '\0';
    const char *end = strrchr(path, '/');
    return strncmp(path, wanted, strlen(wanted)) == 0 && end && strcmp(end, "/fd") == 0;
}

/* Enters a folder, and closes the previous one. */
static int enter(struct ct_target *target, const char *name, int flags)
{
    const int folder = openat(target->folder, name, O_PATH | O_DIRECTORY | O_CLOEXEC | flags);
    if (folder < 0)
        return -errno;
    if (target->folder >= 0)
        close(target->folder);
    target->folder = folder;
    return fstat(folder, &target->around) == 0 ? 0 : -errno;
}

/* Moves the first path component from `rest` to `name`. Returns whether more components follow. */
static bool take_component(char *rest, char name[NAME_MAX + 1], int *error)
{
    const char *at = rest + strspn(rest, "/");
    const size_t length = strcspn(at, "/");
    *error = length > NAME_MAX ? -ENAMETOOLONG : 0;
    if (*error)
        return false;
    memcpy(name, at, length);
    name[length] = '\0';
    const bool more = at[length] != '\0';
    memmove(rest, at + length, strlen(at + length) + 1);
    return more;
}

/* Prepends a link's text to the rest of the path. */
static int take_link(struct ct_target *target, char rest[PATH_MAX], int links, const char **why)
{
    char text[PATH_MAX];
    if (is_laid_by_others(&target->around, &target->status)) {
        *why = "it is a link that another user made in a directory writable by all";
        return -EACCES;
    }
    const ssize_t length = readlinkat(target->folder, target->name, text, sizeof(text));
    if (length < 0)
        return -errno;
    if (links > LINKS_MAX)
        return -ELOOP;
    const size_t left = strlen(rest);
    if ((size_t)length + left >= PATH_MAX)
        return -ENAMETOOLONG;
    memmove(rest + length, rest, left + 1);
    memcpy(rest, text, (size_t)length);
    return *text == '/' ? enter(target, "/", 0) : 0;
}

/* For a magic link in /proc, readlink() does not return the real target. */
static int take_proc_link(struct ct_target *target, bool is_last)
{
    if (!is_last)
        return enter(target, target->name, 0);
    char *end;
    target->is_magic = true;
    const long number = strtol(target->name, &end, 10);
    if (holds_descriptors(target->folder) && *end == '\0' && number >= 0 && number <= INT_MAX)
        target->descriptor = (int)number;
    return fstatat(target->folder, target->name, &target->status, 0) == 0 ? 0 : -errno;
}

static int walk(struct ct_target *target, char rest[PATH_MAX], const char **why)
{
    for (int links = 0;;) {
        int error;
        const bool more = take_component(rest, target->name, &error);
        if (error)
            return error;
        if (!*target->name)
            return -EISDIR;
        target->exists = fstatat(target->folder, target->name, &target->status, AT_SYMLINK_NOFOLLOW) == 0;
        if (!target->exists)
            return errno != ENOENT || more ? -errno : 0;
        if (S_ISLNK(target->status.st_mode) && is_in_proc(target->folder)) {
            if ((error = take_proc_link(target, !more)) != 0 || !more)
                return error;
        } else if (S_ISLNK(target->status.st_mode)) {
            if ((error = take_link(target, rest, ++links, why)) != 0)
                return error;
        } else if (!more) {
            return 0;
        } else if ((error = enter(target, target->name, O_NOFOLLOW)) != 0) {
            return error;
        }
    }
}

int ct_target_find(const char *path, struct ct_target *target, const char **why)
{
    char rest[PATH_MAX];
    *why = NULL;
    *target = (struct ct_target){ .folder = -1, .descriptor = -1 };
    if (strlen(path) >= sizeof(rest))
        return -ENAMETOOLONG;
    strcpy(rest, path);
    const int start = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (start < 0)
        return -errno;
    target->folder = start;
    int error = fstat(start, &target->around) == 0 ? walk(target, rest, why) : -errno;
    const bool is_file = S_ISREG(target->status.st_mode) || S_ISFIFO(target->status.st_mode);
    if (error == 0 && target->exists && is_file && is_laid_by_others(&target->around, &target->status)) {
        *why = "another user made it in a directory writable by all";
        error = -EACCES;
    }
    return error;
}

void ct_target_leave(struct ct_target *target)
{
    if (target->folder >= 0)
        close(target->folder);
    target->folder = -1;
}
