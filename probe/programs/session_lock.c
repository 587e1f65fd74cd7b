#include "session_lock.h"

#include "options.h"
#include "proc.h"
#include "taken_name.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns whether the file belongs to this user, and no one else can open it. */
static bool is_own(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
           status.st_nlink == 1 && !(status.st_mode & 077);
}

/* Opens the file. In a folder that all users can write to, another user may have created a file of this name,
 * which is then removed. Returns -1 with errno set. */
static int open_own(const char *path)
{
    enum { TRIES = 100 };
    for (int i = 0; i < TRIES; i++) {
        const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        if (fd >= 0 && is_own(fd))
            return fd;
        if (fd >= 0)
            close(fd);
        else if (errno != EACCES && errno != ELOOP && errno != EISDIR && errno != ENXIO)
            return -1;
        char aside[CT_NAME_BYTES];
        const int error = ct_taken_remove(path, aside);
        if (error) {
            errno = -error;
            return -1;
        }
    }
    errno = EEXIST;
    return -1;
}

static bool is_named(const struct ct_session_lock *lock)
{
    struct stat named, held;
    return stat(lock->path, &named) == 0 && fstat(lock->fd, &held) == 0 && named.st_ino == held.st_ino &&
           named.st_dev == held.st_dev;
}

static void refuse_second(const struct ct_session_lock *lock, const char *session)
{
    struct stat status;
    const int holder = fstat(lock->fd, &status) == 0 ? (int)ct_proc_flock_holder(status.st_ino) : 0;
    char process[32] = "";
    if (holder > 0)
        snprintf(process, sizeof(process), " (process %d)", holder);
    ct_fail(0, "probe: session %s has a probe already%s, and would record each call twice", session, process);
}

static void name_file(struct ct_session_lock *lock, const char *session)
{
    const char *dir = getenv(CT_SHM_DIR_ENV);
    ct_session_probe_path(lock->path, dir && *dir ? dir : CT_SHM_DIR, ct_session_uid(), session);
}

bool ct_session_lock_take(struct ct_session_lock *lock, const char *session)
{
    name_file(lock, session);
    while ((lock->fd = open_own(lock->path)) >= 0) {
        const bool is_taken = flock(lock->fd, LOCK_EX | LOCK_NB) == 0;
        if (is_taken && is_named(lock))
            return true;
        if (!is_taken)
            refuse_second(lock, session);
        close(lock->fd);
        lock->fd = -1;
        if (!is_taken)
            return false;
        /* The previous holder has removed the file. */
    }
    ct_fail(0,
            "probe: session %s: cannot make the probe's lock %s: %s; remove it, or choose another --session",
            session, lock->path, strerror(errno));
    return false;
}

void ct_session_lock_give(struct ct_session_lock *lock)
{
    if (lock->fd < 0)
        return;
    unlink(lock->path);
    close(lock->fd);
    lock->fd = -1;
}

void ct_session_lock_clear(const char *session)
{
    struct ct_session_lock lock;
    name_file(&lock, session);
    lock.fd = open(lock.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (lock.fd < 0)
        return;
    if (is_own(lock.fd) && flock(lock.fd, LOCK_EX | LOCK_NB) == 0 && is_named(&lock))
        unlink(lock.path);
    close(lock.fd);
}
