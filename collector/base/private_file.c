#include "private_file.h"

#include "log.h"
#include "own_file.h"
#include "own_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Uses /proc, because fchmod() fails on an O_PATH descriptor. */
static int set_mode(int fd, mode_t mode)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return chmod(path, mode);
}

static int refuse_group(const char *path, gid_t group, char *message, size_t bytes)
{
    char reason[128];
    snprintf(reason, sizeof(reason), "its group cannot be changed to %u: %s", (unsigned int)group,
             strerror(errno));
    return ct_own_file_refuse(path, reason, message, bytes);
}

int ct_private_own_fd(int fd, const char *path, const struct ct_private_readers *readers, char *message,
                      size_t bytes)
{
    struct stat status;
    if (ct_own_file_check(fd, path, message, bytes) != 0)
        return -1;
    if (!readers)
        return 0;
    if (fstat(fd, &status) != 0)
        return ct_own_file_refuse(path, strerror(errno), message, bytes);
    if (readers->group != (gid_t)CT_NO_GROUP && status.st_gid != readers->group &&
        fchownat(fd, "", (uid_t)-1, readers->group, AT_EMPTY_PATH) != 0)
        return refuse_group(path, readers->group, message, bytes);
    if ((status.st_mode & 07777) != readers->mode && set_mode(fd, readers->mode) != 0)
        return ct_own_file_refuse(path, strerror(errno), message, bytes);
    if (status.st_mode & 0777 & ~readers->mode)
        ct_log(CT_LOG_mode_tightened, "'%s' was accessible to other users (mode %04o); its mode is now %04o",
               path, status.st_mode & 07777, readers->mode);
    return 0;
}

/* O_PATH does not open the file itself, so a FIFO does not block, and closing the descriptor does not drop
 * the locks that SQLite holds on the file. */
int ct_private_own(const char *path, const struct ct_private_readers *readers, char *message, size_t bytes)
{
    const int fd = ct_own_path_open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return ct_own_file_refuse(path, strerror(errno), message, bytes);
    const int error = ct_private_own_fd(fd, path, readers, message, bytes);
    close(fd);
    return error;
}
