#include "own_path.h"

#include "real_user.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
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

void ct_own_path_resolve(char *path, size_t bytes)
{
    char folder[PATH_MAX], real[PATH_MAX], name[NAME_MAX + 1];
    const size_t length = (size_t)(name_of(path) - path), name_bytes = strlen(name_of(path)) + 1;
    if (length == 0 || length >= sizeof(folder) || name_bytes > sizeof(name))
        return;
    memcpy(folder, path, length);
    folder[length] = '\0';
    memcpy(name, name_of(path), name_bytes);
    if (!realpath(folder, real) || strlen(real) + 1 + name_bytes > bytes)
        return;
    const size_t real_bytes = strcmp(real, "/") == 0 ? 0 : strlen(real);
    memcpy(path, real, real_bytes);
    path[real_bytes] = '/';
    memcpy(path + real_bytes + 1, name, name_bytes);
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
