#include "output_place.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { LINKS_MAX = 40 }; /* as the kernel's */

/* What the kernel refuses with fs.protected_symlinks, protected_fifos and protected_regular, which need not
 * be set: a folder for everybody holds what anybody has laid there, under names that others will use. */
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

/* The folder /proc/self/fd, by whatever name. */
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

/* Goes into a folder, the old one being closed. */
static int enter(struct ct_place *place, const char *name, int flags)
{
    const int folder = openat(place->folder, name, O_PATH | O_DIRECTORY | O_CLOEXEC | flags);
    if (folder < 0)
        return -errno;
    if (place->folder >= 0)
        close(place->folder);
    place->folder = folder;
    return fstat(folder, &place->around) == 0 ? 0 : -errno;
}

/* Takes the first component of `rest`; whether others follow. */
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

/* Puts what a link says before the rest of the path. */
static int take_link(struct ct_place *place, char rest[PATH_MAX], int links, const char **why)
{
    char text[PATH_MAX];
    if (is_laid_by_others(&place->around, &place->status)) {
        *why = "it is a link that another user has laid in a folder for everybody";
        return -EACCES;
    }
    const ssize_t length = readlinkat(place->folder, place->name, text, sizeof(text));
    if (length < 0)
        return -errno;
    if (links > LINKS_MAX)
        return -ELOOP;
    const size_t left = strlen(rest);
    if ((size_t)length + left >= PATH_MAX)
        return -ENAMETOOLONG;
    memmove(rest + length, rest, left + 1);
    memcpy(rest, text, (size_t)length);
    return *text == '/' ? enter(place, "/", 0) : 0;
}

/* A link in /proc leads where its text does not say. */
static int take_proc_link(struct ct_place *place, bool is_last)
{
    if (!is_last)
        return enter(place, place->name, 0);
    char *end;
    place->is_magic = true;
    const long number = strtol(place->name, &end, 10);
    if (holds_descriptors(place->folder) && *end == '\0' && number >= 0 && number <= INT_MAX)
        place->descriptor = (int)number;
    return fstatat(place->folder, place->name, &place->status, 0) == 0 ? 0 : -errno;
}

static int walk(struct ct_place *place, char rest[PATH_MAX], const char **why)
{
    for (int links = 0;;) {
        int error;
        const bool more = take_component(rest, place->name, &error);
        if (error)
            return error;
        if (!*place->name)
            return -EISDIR;
        place->exists = fstatat(place->folder, place->name, &place->status, AT_SYMLINK_NOFOLLOW) == 0;
        if (!place->exists)
            return errno != ENOENT || more ? -errno : 0;
        if (S_ISLNK(place->status.st_mode) && is_in_proc(place->folder)) {
            if ((error = take_proc_link(place, !more)) != 0 || !more)
                return error;
        } else if (S_ISLNK(place->status.st_mode)) {
            if ((error = take_link(place, rest, ++links, why)) != 0)
                return error;
        } else if (!more) {
            return 0;
        } else if ((error = enter(place, place->name, O_NOFOLLOW)) != 0) {
            return error;
        }
    }
}

int ct_place_find(const char *path, struct ct_place *place, const char **why)
{
    char rest[PATH_MAX];
    *why = NULL;
    *place = (struct ct_place){ .folder = -1, .descriptor = -1 };
    if (strlen(path) >= sizeof(rest))
        return -ENAMETOOLONG;
    strcpy(rest, path);
    const int start = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (start < 0)
        return -errno;
    place->folder = start;
    int error = fstat(start, &place->around) == 0 ? walk(place, rest, why) : -errno;
    const bool is_file = S_ISREG(place->status.st_mode) || S_ISFIFO(place->status.st_mode);
    if (error == 0 && place->exists && is_file && is_laid_by_others(&place->around, &place->status)) {
        *why = "another user has laid it in a folder for everybody";
        error = -EACCES;
    }
    return error;
}

void ct_place_leave(struct ct_place *place)
{
    if (place->folder >= 0)
        close(place->folder);
    place->folder = -1;
}
