/* Asks the kernel itself whose a process and a file are: a library that is preloaded to lie about it
 * (fakeroot) is not asked. All else, outputs' modes for instance, is left to that library. */
#ifndef CT_PROTO_REAL_USER_H
#define CT_PROTO_REAL_USER_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline uint32_t ct_real_euid(void)
{
    return (uint32_t)syscall(SYS_geteuid);
}

static inline int ct_real_fstat(int fd, struct stat *status)
{
    return (int)syscall(SYS_fstat, fd, status);
}

/* Tells of a link itself. */
static inline int ct_real_lstat(const char *path, struct stat *status)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

#endif
