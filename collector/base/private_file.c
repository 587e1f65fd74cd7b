#include "private_file.h"

#include "log.h"
#include "real_user.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Through /proc, since a descriptor with O_PATH takes no fchmod(). */
static int set_mode(int fd, mode_t mode)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return chmod(path, mode);
}

int ct_private_own_fd(int fd, const char *path, const struct ct_private_readers *readers, char *message,
                      size_t bytes)
{
    struct stat status;
    const char *reason = NULL;
    if (ct_real_fstat(fd, &status) != 0)
        reason = strerror(errno);
    else if (S_ISLNK(status.st_mode))
        reason = "it is a symbolic link";
    else if (S_ISDIR(status.st_mode))
        reason = "it is a directory";
    else if (!S_ISREG(status.st_mode))
        reason = "it is not a regular file";
    else if (status.st_uid != ct_real_euid())
        reason = "it belongs to another user, who could read and change it";
    else if (status.st_nlink > 1)
        reason = "it has a second name (a hard link), by which somebody could read and change it";
    else if (readers && readers->group != (gid_t)CT_NO_GROUP && status.st_gid != readers->group &&
             fchownat(fd, "", (uid_t)-1, readers->group, AT_EMPTY_PATH) != 0)
        reason = "it cannot be given to the group";
    else if (readers && (status.st_mode & 07777) != readers->mode && set_mode(fd, readers->mode) != 0)
        reason = strerror(errno);
    if (!reason) {
        if (readers && status.st_mode & 0777 & ~readers->mode)
            ct_log(CT_LOG_mode_tightened, "'%s' was open to others (mode %04o): it is %04o from now on", path,
                   status.st_mode & 07777, readers->mode);
        return 0;
    }
    snprintf(message, bytes, "'%s' is left alone: %s", path, reason);
    return -1;
}

/* O_PATH opens nothing: a FIFO does not wait, and closing it drops none of the locks that SQLite holds on the
 * same file. */
int ct_private_own(const char *path, const struct ct_private_readers *readers, char *message, size_t bytes)
{
    const int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0) {
        snprintf(message, bytes, "'%s' is left alone: %s", path, strerror(errno));
        return -1;
    }
    const int error = ct_private_own_fd(fd, path, readers, message, bytes);
    close(fd);
    return error;
}
