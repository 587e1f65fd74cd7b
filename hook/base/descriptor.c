#include "descriptor.h"

#include "real_user.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STANDARD = 3 }; /* standard input, output and error */

/* The kernel always returns the lowest free descriptor, so any that are free from 0 to 2 are first filled
 * with O_PATH descriptors. Reading or writing an O_PATH descriptor fails with EBADF, just as with a closed
 * descriptor. */
static struct {
    _Atomic bool busy;
    _Atomic uint32_t numbers; /* bit N is set if descriptor N is filled */
    dev_t device;
    ino_t inode;
} filled;

static bool all_open(void)
{
    for (int i = 0; i < STANDARD; i++) {
        if (fcntl(i, F_GETFD) < 0)
            return false;
    }
    return true;
}

/* True if the hook still owns the descriptor. The program may have opened another file under the same number
 * (dup2()). */
static bool is_ours(int number)
{
    struct stat status;
    const int flags = fcntl(number, F_GETFL);
    return flags >= 0 && flags & O_PATH && ct_real_fstat(number, &status) == 0 &&
           status.st_ino == filled.inode && status.st_dev == filled.device;
}

static void take_away(void)
{
    const int error = errno;
    const uint32_t numbers = atomic_exchange(&filled.numbers, 0);
    for (int i = 0; i < STANDARD; i++) {
        if (numbers & UINT32_C(1) << i && is_ours(i))
            close(i);
    }
    errno = error;
}

/* Fills the free descriptors from 0 to 2. On failure, fills none and returns false. */
static bool fill(void)
{
    struct stat status;
    int fd;
    while ((fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) >= 0 && fd < STANDARD) {
        if (ct_real_fstat(fd, &status) == 0) {
            filled.inode = status.st_ino;
            filled.device = status.st_dev;
        }
        atomic_fetch_or(&filled.numbers, UINT32_C(1) << fd);
    }
    if (fd < 0) {
        take_away();
        return false;
    }
    close(fd);
    return true;
}

/* A request to open a path, or a socket if `path` is NULL. */
struct wanted {
    const char *path;
    int flags, domain;
    mode_t mode;
};

/* Opens the file or the socket. If the descriptor is below 3, moves it up, since another thread may have
 * closed a standard descriptor after fill(). */
static int open_above(const struct wanted *wanted)
{
    const int fd = wanted->path ? open(wanted->path, wanted->flags | O_CLOEXEC, wanted->mode)
                                : socket(wanted->domain, wanted->flags | SOCK_CLOEXEC, 0);
    if (fd < 0 || fd >= STANDARD)
        return fd;
    const int above = fcntl(fd, F_DUPFD_CLOEXEC, STANDARD);
    const int error = errno;
    close(fd);
    errno = error;
    return above;
}

static int open_wanted(const struct wanted *wanted)
{
    if (all_open())
        return open_above(wanted);
    /* Only one thread at a time may fill the descriptors. A second thread fails instead of waiting, but most
     * files are opened under the process lock, and therefore by only one thread at a time. A failure does
     * little harm: the daemon still works if its doorbell is not rung, and if /proc/self/statm cannot be
     * read, bound.c assumes that no addresses are in use. */
    if (atomic_exchange(&filled.busy, true)) {
        errno = EAGAIN;
        return -1;
    }
    const int fd = fill() ? open_above(wanted) : -1;
    take_away();
    atomic_store(&filled.busy, false);
    return fd;
}

int ct_descriptor_open(const char *path, int flags, mode_t mode)
{
    return open_wanted(&(struct wanted){ .path = path, .flags = flags, .mode = mode });
}

int ct_descriptor_socket(int domain, int type)
{
    return open_wanted(&(struct wanted){ .domain = domain, .flags = type });
}

size_t ct_descriptor_read(const char *path, char *text, size_t bytes)
{
    size_t n = 0;
    ssize_t got;
    const int fd = ct_descriptor_open(path, O_RDONLY, 0);
    while (fd >= 0 && n < bytes - 1 && (got = read(fd, text + n, bytes - 1 - n)) > 0)
        n += (size_t)got;
    if (fd >= 0)
        close(fd);
    text[n] = '\0';
    return n;
}

void ct_descriptor_forget(void)
{
    take_away();
    atomic_store(&filled.busy, false);
}
