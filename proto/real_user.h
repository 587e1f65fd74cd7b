/* Whose a process and a file are, by the kernel's own word: a library that is preloaded to lie about it
 * (fakeroot) is not asked. What is not asked for with these, outputs' modes for instance, is left to it. */
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

/* Of a link itself. */
static inline int ct_real_lstat(const char *path, struct stat *status)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

#endif
