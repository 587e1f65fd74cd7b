#include "own_path.h"

#include "output_target.h"
#include "real_user.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A link of root's may have been given a second name by another user. */
static bool is_own_link(int folder, const char *name)
{
    struct stat status;
    return ct_real_lstatat(folder, name, &status) == 0 && S_ISLNK(status.st_mode) && status.st_nlink == 1 &&
           (status.st_uid == 0 || status.st_uid == ct_real_euid());
}

int ct_own_path_openat(int folder, const char *name, int flags, mode_t mode)
{
    const int fd = openat(folder, name, flags | O_NOFOLLOW, mode);
    const bool is_link =
        fd < 0 && !(flags & O_NOFOLLOW) && (errno == ELOOP || errno == ENOTDIR) && is_own_link(folder, name);
    return is_link ? openat(folder, name, flags, mode) : fd;
}

/* Opens the folder that the first `length` bytes of `path` name. */
static int open_inner(int folder, const char *path, size_t length)
{
    char name[NAME_MAX + 1];
    if (length > NAME_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(name, path, length);
    name[length] = '\0';
    return ct_own_path_openat(folder, name, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
}

static void close_folder(int folder)
{
    const int error = errno;
    close(folder);
    errno = error;
}

int ct_own_path_folder(const char *path, const char *end)
{
    int folder = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (folder >= 0 && (path += strspn(path, "/")) < end) {
        const size_t length = strcspn(path, "/");
        const int inner = open_inner(folder, path, length);
        close_folder(folder);
        folder = inner;
        path += length;
    }
    return folder;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Writes the path of the target, without links. Returns false if it is unknown or does not fit. */
static bool write_target(const struct ct_output_target *target, char *path, size_t bytes)
{
    char link[32], real[PATH_MAX + NAME_MAX + 2];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", target->folder);
    ssize_t length = target->is_magic ? readlinkat(target->folder, target->name, real, PATH_MAX)
                                      : readlink(link, real, PATH_MAX);
    if (length <= 0 || length == PATH_MAX || *real != '/')
        return false;
    if (!target->is_magic)
        length += snprintf(real + length, sizeof(real) - (size_t)length, "%s%s", length == 1 ? "" : "/",
                           target->name);
    if ((size_t)length >= bytes)
        return false;
    memcpy(path, real, (size_t)length);
    path[length] = '\0';
    return true;
}

const char *ct_own_path_resolve(char *path, size_t bytes)
{
    struct ct_output_target target;
    const char *why;
    if (ct_output_target_find_folder(path, &target, &why) == 0)
        write_target(&target, path, bytes);
    ct_output_target_leave(&target);
    return why;
}

const char *ct_own_path_check_folder(const char *path)
{
    struct ct_output_target target;
    char inside[PATH_MAX];
    const char *why = NULL;
    const int n = snprintf(inside, sizeof(inside), "%s/.", path);
    if ((size_t)n < sizeof(inside)) {
        ct_output_target_find_folder(inside, &target, &why);
        ct_output_target_leave(&target);
    }
    return why;
}

int ct_own_path_follow(char *path, size_t bytes, const char **why)
{
    struct ct_output_target target;
    int error = ct_output_target_find(path, &target, why);
    if (!error && !target.exists)
        error = -ENOENT;
    if (!error && !write_target(&target, path, bytes))
        error = -ENAMETOOLONG;
    ct_output_target_leave(&target);
    return error;
}

int ct_own_path_open(const char *path, int flags, mode_t mode)
{
    const int folder = ct_own_path_folder(path, name_of(path));
    const int fd = folder >= 0 ? ct_own_path_openat(folder, name_of(path), flags, mode) : -1;
    if (folder >= 0)
        close_folder(folder);
    return fd;
}

int ct_own_path_unlink(const char *path)
{
    const int folder = ct_own_path_folder(path, name_of(path));
    const int result = folder >= 0 ? unlinkat(folder, name_of(path), 0) : -1;
    if (folder >= 0)
        close_folder(folder);
    return result;
}
