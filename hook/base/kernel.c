/* The hook's system calls, under the names of C library functions (libc.h). */
#include "compiler.h"
#include "libc.h"
#include "machine.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>

/* Converts the kernel's result to the C library's convention. The kernel returns errors as -4095 to -1. */
static long result_of(long result)
{
    if (CT_LIKELY((unsigned long)result < -4095UL))
        return result;
    errno = (int)-result;
    return -1;
}

#define CALL_6(number, a, b, c, d, e, f)                                                                     \
    result_of(ct_kernel_call(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f)))
#define CALL_5(number, a, b, c, d, e) CALL_6(number, a, b, c, d, e, 0)
#define CALL_4(number, a, b, c, d)    CALL_5(number, a, b, c, d, 0)
#define CALL_3(number, a, b, c)       CALL_4(number, a, b, c, 0)
#define CALL_2(number, a, b)          CALL_3(number, a, b, 0)
#define CALL_1(number, a)             CALL_2(number, a, 0)

long syscall(long number, ...)
{
    va_list list;
    va_start(list, number);
    long arguments[6];
    for (size_t i = 0; i < CT_ARRAY_LENGTH(arguments); i++)
        arguments[i] = va_arg(list, long);
    va_end(list);
    return CALL_6(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}

/* Returns the error number, or 0 on success, and does not change errno. */
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
    return (int)-ct_kernel_call(SYS_clock_nanosleep, clock, flags, (long)time, (long)left, 0, 0);
}

/* The kernel ignores the mode unless the call creates a file. */
int open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    const mode_t mode = va_arg(list, mode_t);
    va_end(list);
    return (int)CALL_4(SYS_openat, AT_FDCWD, path, flags, mode);
}

int fcntl(int fd, int command, ...)
{
    va_list list;
    va_start(list, command);
    const long argument = va_arg(list, long);
    va_end(list);
    return (int)CALL_3(SYS_fcntl, fd, command, argument);
}

int close(int fd)
{
    return (int)CALL_1(SYS_close, fd);
}

ssize_t read(int fd, void *bytes, size_t count)
{
    return CALL_3(SYS_read, fd, bytes, count);
}

int fchmod(int fd, mode_t mode)
{
    return (int)CALL_2(SYS_fchmod, fd, mode);
}

int fstatfs(int fd, struct statfs *status)
{
    return (int)CALL_2(SYS_fstatfs, fd, status);
}

int getrlimit(__rlimit_resource_t resource, struct rlimit *limit)
{
    return (int)CALL_4(SYS_prlimit64, 0, resource, NULL, limit);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    return (int)CALL_5(SYS_linkat, from_folder, from, to_folder, to, flags);
}

/* readlink() and unlink() make the same system calls as in the C library, because those are the calls that
 * filters allow. */
ssize_t readlink(const char *path, char *text, size_t bytes)
{
#ifdef SYS_readlink
    return CALL_3(SYS_readlink, path, text, bytes);
#else
    return CALL_4(SYS_readlinkat, AT_FDCWD, path, text, bytes);
#endif
}

int unlink(const char *path)
{
#ifdef SYS_unlink
    return (int)CALL_1(SYS_unlink, path);
#else
    return (int)CALL_3(SYS_unlinkat, AT_FDCWD, path, 0);
#endif
}

int utimensat(int folder, const char *path, const struct timespec times[2], int flags)
{
    return (int)CALL_4(SYS_utimensat, folder, path, times, flags);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return (void *)CALL_6(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

int munmap(void *memory, size_t bytes)
{
    return (int)CALL_2(SYS_munmap, memory, bytes);
}

int mprotect(void *memory, size_t bytes, int protection)
{
    return (int)CALL_3(SYS_mprotect, memory, bytes, protection);
}

int madvise(void *memory, size_t bytes, int advice)
{
    return (int)CALL_3(SYS_madvise, memory, bytes, advice);
}

void *mremap(void *memory, size_t bytes, size_t new_bytes, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    void *const to = flags & MREMAP_FIXED ? va_arg(list, void *) : NULL;
    va_end(list);
    return (void *)CALL_5(SYS_mremap, memory, bytes, new_bytes, flags, to);
}

int socket(int domain, int type, int protocol)
{
    return (int)CALL_3(SYS_socket, domain, type, protocol);
}

ssize_t sendto(int fd, const void *bytes, size_t count, int flags, const struct sockaddr *address,
               socklen_t address_bytes)
{
    return CALL_6(SYS_sendto, fd, bytes, count, flags, address, address_bytes);
}

int connect(int fd, const struct sockaddr *address, socklen_t address_bytes)
{
    return (int)CALL_3(SYS_connect, fd, address, address_bytes);
}

int getsockopt(int fd, int level, int option, void *value, socklen_t *bytes)
{
    return (int)CALL_5(SYS_getsockopt, fd, level, option, value, bytes);
}

int sigaltstack(const stack_t *stack, stack_t *before)
{
    return (int)CALL_2(SYS_sigaltstack, stack, before);
}
