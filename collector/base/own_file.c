#include "own_file.h"

#include "real_user.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int ct_own_file_refuse(const char *path, const char *reason, char *message, size_t bytes)
{
    snprintf(message, bytes, "cannot use '%s': %s", path, reason);
    return -1;
}

int ct_own_file_check(int fd, const char *path, char *message, size_t bytes)
{
    struct stat status;
    char reason[128];
    if (ct_real_fstat(fd, &status) != 0)
        return ct_own_file_refuse(path, strerror(errno), message, bytes);
    if (S_ISLNK(status.st_mode))
        snprintf(reason, sizeof(reason), "it is a symbolic link of user %u", status.st_uid);
    else if (S_ISDIR(status.st_mode))
        snprintf(reason, sizeof(reason), "it is a directory");
    else if (!S_ISREG(status.st_mode))
        snprintf(reason, sizeof(reason), "it is not a regular file");
    else if (status.st_uid != ct_real_euid())
        snprintf(reason, sizeof(reason), "it belongs to user %u, who could read and change it",
                 status.st_uid);
    else if (status.st_nlink > 1)
        snprintf(reason, sizeof(reason),
                 "it has a second name (a hard link), through which another user could "
                 "read and change it");
    else
        return 0;
    return ct_own_file_refuse(path, reason, message, bytes);
}
