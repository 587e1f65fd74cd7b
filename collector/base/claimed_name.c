#include "claimed_name.h"

#include "log.h"
#include "taken_name.h"
#include "test_point.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>

int ct_claimed_clear(const char *path)
{
    char aside[CT_NAME_BYTES];
    const int error = ct_taken_remove(path, aside);
    if (*aside)
        ct_log(CT_LOG_name_cleared, "renamed the directory '%s', which had the name '%s' of a session's file",
               aside, path);
    return error;
}

static int bind_to(int fd, const struct sockaddr_un *address, mode_t mask)
{
    const mode_t before = umask(mask);
    const int error = bind(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ? 0 : -errno;
    umask(before);
    return error;
}

int ct_claimed_socket(const char *path, int type, mode_t mask, ino_t *inode)
{
    enum { TRIES = 100 }; /* another user may take the name again between two steps */
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct stat status;
    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path) + 1);
    const int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = fd < 0 ? -errno : -EADDRINUSE;
    for (int i = 0; i < TRIES && error == -EADDRINUSE; i++) {
        error = ct_claimed_clear(path);
        CT_TEST_POINT("socket.binding");
        if (!error)
            error = bind_to(fd, &address, mask);
    }
    if (error) {
        if (fd >= 0)
            close(fd);
        return error;
    }
    if (lstat(path, &status) == 0)
        *inode = status.st_ino;
    return fd;
}
