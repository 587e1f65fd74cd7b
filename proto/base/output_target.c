#include "output_target.h"

#include "real_user.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { LINKS_MAX = 40 }; /* the kernel's limit */

/* Writes a sentence about a file of another user, and returns it. */
static const char *refusal(const struct ct_output_target *target, const char *kind, const struct stat *status,
                           const char *place)
{
    static _Thread_local char text[PATH_MAX + 256];
    char link[32], folder[PATH_MAX];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", target->folder);
    const ssize_t length = readlink(link, folder, sizeof(folder));
    const bool is_root = length == 1;
    snprintf(text, sizeof(text), "'%.*s%s%s' is a %s of user %u in %s; remove it, or name another path",
             length > 0 && !is_root ? (int)length : 0, folder, length > 0 ? "/" : "", target->name, kind,
             status->st_uid, place);
    return text;
}

/* Returns whether another user may have put the link into a folder that all users can write to. The kernel
 * itself refuses such links if fs.protected_symlinks is set, which cannot be relied on. Users may give a link
 * of root's a second name. */
static bool is_link_of_others(const struct stat *around, const struct stat *link)
{
    const bool is_trusted =
        link->st_uid == 0 || link->st_uid == ct_real_euid() || link->st_uid == around->st_uid;
    return (around->st_mode & S_IWOTH) && !(is_trusted && link->st_nlink == 1);
}

/* Returns whether another user may have put the file into a shared folder in order to receive our output. The
 * kernel itself refuses such files if fs.protected_fifos and protected_regular are set. */
static bool is_file_of_others(const struct stat *around, const struct stat *file)
{
    return (S_ISREG(file->st_mode) || S_ISFIFO(file->st_mode)) && (around->st_mode & S_ISVTX) &&
           (around->st_mode & (S_IWOTH | S_IWGRP)) && file->st_uid != ct_real_euid() &&
           file->st_uid != around->st_uid;
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
static int enter(struct ct_output_target *target, const char *name, int flags)
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

/* Reads the text of a link unless it belongs to another user. Opens the link first, because the other user
 * may exchange it at any time. Returns the length or -errno. */
static ssize_t read_link(const struct ct_output_target *target, char text[PATH_MAX], const char **why)
{
    struct stat around, link;
    const int fd = openat(target->folder, target->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t length = -EACCES;
    if (ct_real_fstat(target->folder, &around) != 0 || ct_real_fstat(fd, &link) != 0) {
        length = -errno;
    } else if (is_link_of_others(&around, &link)) {
        *why = refusal(target, "link", &link, "a directory writable by all");
    } else {
        length = readlinkat(fd, "", text, PATH_MAX);
        length = length < 0 ? -errno : length;
    }
    close(fd);
    return length;
}

/* Prepends a link's text to the rest of the path. */
static int take_link(struct ct_output_target *target, char rest[PATH_MAX], int links, const char **why)
{
    char text[PATH_MAX];
    const ssize_t length = read_link(target, text, why);
    if (length < 0)
        return (int)length;
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
static int take_proc_link(struct ct_output_target *target, bool is_last)
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

static int walk(struct ct_output_target *target, char rest[PATH_MAX], bool is_last_followed, const char **why)
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
        if (!more && !is_last_followed) {
            return 0;
        } else if (S_ISLNK(target->status.st_mode) && is_in_proc(target->folder)) {
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

static int find(const char *path, struct ct_output_target *target, bool is_last_followed, const char **why)
{
    char rest[PATH_MAX];
    *why = NULL;
    *target = (struct ct_output_target){ .folder = -1, .descriptor = -1 };
    if (strlen(path) >= sizeof(rest))
        return -ENAMETOOLONG;
    strcpy(rest, path);
    const int start = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (start < 0)
        return -errno;
    target->folder = start;
    return fstat(start, &target->around) == 0 ? walk(target, rest, is_last_followed, why) : -errno;
}

int ct_output_target_find(const char *path, struct ct_output_target *target, const char **why)
{
    struct stat around, file;
    const int error = find(path, target, true, why);
    if (error || !target->exists || target->is_magic)
        return error;
    if (ct_real_fstat(target->folder, &around) != 0 ||
        ct_real_lstatat(target->folder, target->name, &file) != 0)
        return -errno;
    if (!is_file_of_others(&around, &file))
        return 0;
    *why = refusal(target, S_ISREG(file.st_mode) ? "file" : "FIFO", &file, "a directory writable by others");
    return -EACCES;
}

int ct_output_target_find_folder(const char *path, struct ct_output_target *target, const char **why)
{
    return find(path, target, false, why);
}

/* Opens the file that exists, unless it is no longer the one that was found. */
static int open_existing(const struct ct_output_target *target, int flags)
{
    const int fd = openat(target->folder, target->name, flags & ~(O_CREAT | O_EXCL));
    struct stat now;
    if (fd < 0)
        return errno == ENOENT || errno == ELOOP ? -ESTALE : -errno;
    if (fstat(fd, &now) == 0 && now.st_dev == target->status.st_dev && now.st_ino == target->status.st_ino)
        return fd;
    close(fd);
    return -ESTALE;
}

int ct_output_target_open_found(const struct ct_output_target *target, int flags, mode_t mode)
{
    flags |= O_CLOEXEC | (target->is_magic ? 0 : O_NOFOLLOW);
    if (target->descriptor >= 0) {
        const int copy = fcntl(target->descriptor, F_DUPFD_CLOEXEC, 0);
        return copy < 0 ? -errno : copy;
    }
    if (target->exists)
        return open_existing(target, flags);
    const int fd = openat(target->folder, target->name, flags | (flags & O_CREAT ? O_EXCL : 0), mode);
    return fd >= 0 ? fd : errno == EEXIST ? -ESTALE : -errno;
}

int ct_output_target_open(const char *path, int flags, mode_t mode, const char **why)
{
    enum { TRIES = 10 };
    int fd = -ESTALE;
    for (int i = 0; fd == -ESTALE && i < TRIES; i++) {
        struct ct_output_target target;
        const int error = ct_output_target_find(path, &target, why);
        fd = error ? error : ct_output_target_open_found(&target, flags, mode);
        ct_output_target_leave(&target);
    }
    if (fd == -ESTALE)
        *why = "another program creates and removes the file again and again";
    return fd;
}

void ct_output_target_leave(struct ct_output_target *target)
{
    if (target->folder >= 0)
        close(target->folder);
    target->folder = -1;
}
