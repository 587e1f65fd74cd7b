#include "taken_name.h"

#include <errno.h>
#include <sys/random.h>

/* Gives the directory another name in the same directory. The kernel moves the name itself, even if it has
 * become a link since. */
static int move_aside(const char *path, char aside[CT_NAME_BYTES])
{
    enum { TRIES = 10 };
    const char *slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash + 1 - path) : 0;
    for (int i = 0; i < TRIES; i++) {
        uint64_t number = 0;
        if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
            number = (uint64_t)getpid() + (uint64_t)i;
        /* The second part of the name is not a number, so that no component uses this name. */
        const int length =
            snprintf(aside, CT_NAME_BYTES, "%.*scudatrace.aside.%" PRIx64, folder, path, number);
        if (length >= CT_NAME_BYTES)
            return -ENAMETOOLONG;
        if (rename(path, aside) == 0)
            return 0;
        if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
            return -errno;
    }
    return -EEXIST;
}

int ct_taken_remove(const char *path, char aside[CT_NAME_BYTES])
{
    aside[0] = '\0';
    if (unlink(path) == 0 || errno == ENOENT)
        return 0;
    const int error = -errno;
    if (error != -EISDIR && error != -EPERM)
        return error;
    if (rmdir(path) == 0 || errno == ENOENT)
        return 0;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return errno == ENOTDIR ? error : -errno;
    const int moved = move_aside(path, aside);
    if (moved != 0)
        aside[0] = '\0';
    return moved == -ENOENT ? 0 : moved;
}

bool ct_taken_is_foreign(const char *path)
{
    struct stat status;
    return ct_real_lstat(path, &status) == 0 && (!S_ISREG(status.st_mode) || status.st_uid != ct_real_euid());
}

static const char *kind_of(mode_t mode)
{
    return S_ISREG(mode)    ? "a file"
           : S_ISDIR(mode)  ? "a directory"
           : S_ISLNK(mode)  ? "a symbolic link"
           : S_ISFIFO(mode) ? "a FIFO"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

void ct_taken_explain(const char *path, int error, char *text, size_t bytes)
{
    struct stat status;
    const bool is_taken = error == EPERM || error == EACCES || error == EADDRINUSE || error == EEXIST ||
                          error == ENOTEMPTY || error == EBUSY;
    if (!is_taken || ct_real_lstat(path, &status) != 0)
        snprintf(text, bytes, "cannot create '%s': %s", path, strerror(error));
    else
        snprintf(
            text, bytes,
            "cannot use the name '%s': it is taken by %s of user %u, which cannot be removed (%s): remove "
            "it as that user or as root, or choose another --session or --shm-dir",
            path, kind_of(status.st_mode), status.st_uid, strerror(error));
}
