/* Gets the owner of a process or a file directly from the kernel, bypassing any preloaded library that fakes
 * the owner (fakeroot). The preloaded library still handles everything else, for example the modes of output
 * files. */
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

/* Does not follow symbolic links. `folder` is the descriptor of a directory, or AT_FDCWD. */
static inline int ct_real_lstatat(int folder, const char *name, struct stat *status)
{
    return (int)syscall(SYS_newfstatat, folder, name, status, AT_SYMLINK_NOFOLLOW);
}

static inline int ct_real_lstat(const char *path, struct stat *status)
{
    return ct_real_lstatat(AT_FDCWD, path, status);
}

#endif
