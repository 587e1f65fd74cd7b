#include "temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_BYTES = 48 };

static struct {
    volatile sig_atomic_t exists; /* once set, the signal handler may use the other fields */
    int folder;
    char name[NAME_BYTES];
} files[CT_TEMPORARIES];

/* ---- signals ---- */

/* Removes the files and re-raises the signal, which is blocked until the handler returns
 * and then ends the process. */
static void on_signal(int number)
{
    for (int i = 0; i < CT_TEMPORARIES; i++) {
        if (files[i].exists)
            unlinkat(files[i].folder, files[i].name, 0);
    }
    signal(number, SIG_DFL);
    raise(number);
}

/* Catches the signals that would end the process. Signals that the process ignores stay ignored. */
static void catch_signals(void)
{
    static const int numbers[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGALRM, SIGXCPU };
    struct sigaction before, ours = { .sa_handler = on_signal };
    sigfillset(&ours.sa_mask);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(numbers[i], &ours, NULL);
    }
    signal(SIGXFSZ, SIG_IGN); /* makes write() fail instead, which can be reported */
}

/* ---- files ---- */

static void forget(enum ct_temporary which)
{
    files[which].exists = 0;
    close(files[which].folder);
}

int ct_temporary_make(enum ct_temporary which, int folder)
{
    uint64_t random[2];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return -EIO;
    const int own = fcntl(folder, F_DUPFD_CLOEXEC, 3);
    if (own < 0)
        return -errno;
    catch_signals();
    files[which].folder = own;
    snprintf(files[which].name, NAME_BYTES, ".cudatrace-%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    files[which].exists = 1; /* set before the file exists, because no other process uses that name */
    const int fd = openat(own, files[which].name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0 && fchmod(fd, 0600) == 0)
        return fd;
    const int error = -errno;
    if (fd >= 0)
        close(fd);
    ct_temporary_remove(which);
    return error;
}

bool ct_temporary_exists(enum ct_temporary which)
{
    return files[which].exists;
}

bool ct_temporary_path(enum ct_temporary which, char path[PATH_MAX])
{
    char link[32];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", files[which].folder);
    const ssize_t length = readlink(link, path, PATH_MAX - NAME_BYTES - 1);
    if (length < 0 || length >= PATH_MAX - NAME_BYTES - 1)
        return false;
    snprintf(path + length, (size_t)(PATH_MAX - length), "%s%s", length > 1 ? "/" : "", files[which].name);
    return true;
}

int ct_temporary_rename(enum ct_temporary which, const char *name)
{
    if (renameat(files[which].folder, files[which].name, files[which].folder, name) != 0)
        return -errno;
    forget(which);
    return 0;
}

void ct_temporary_remove(enum ct_temporary which)
{
    if (!files[which].exists)
        return;
    unlinkat(files[which].folder, files[which].name, 0);
    forget(which);
}
