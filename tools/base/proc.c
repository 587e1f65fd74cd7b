#include "proc.h"

#include "lock_holder.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

char *ct_proc_file(pid_t pid, const char *name, size_t *bytes)
{
    enum { FILE_BYTES_MAX = 64 << 20 };
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    size_t room = 4096, n = 0;
    char *text = malloc(room);
    ssize_t got = 0;
    while (text && (got = read(fd, text + n, room - n - 1)) > 0) {
        n += (size_t)got;
        if (room - n > 1 || room > FILE_BYTES_MAX)
            continue;
        char *larger = realloc(text, room *= 2);
        if (!larger)
            break;
        text = larger;
    }
    const int error = errno;
    close(fd);
    if (text && got < 0) {
        free(text);
        text = NULL;
        errno = error;
    }
    if (text)
        text[n] = '\0';
    if (bytes)
        *bytes = text ? n : 0;
    return text;
}

bool ct_proc_is_stopped(pid_t pid)
{
    struct ct_proc_stat stat;
    return ct_proc_stat(pid, &stat) == 0 && stat.is_stopped;
}

pid_t ct_proc_thread(pid_t pid)
{
    struct ct_proc_stat stat;
    if (ct_proc_stat(pid, &stat) != 0 || stat.ended || !stat.first_ended)
        return pid;
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    pid_t found = pid;
    for (struct dirent *task; tasks && found == pid && (task = readdir(tasks)) != NULL;) {
        const pid_t thread = (pid_t)strtol(task->d_name, NULL, 10);
        if (thread > 0 && ct_proc_stat(thread, &stat) == 0 && !stat.first_ended)
            found = thread; /* /proc does not list TID, but /proc/TID has its files */
    }
    if (tasks)
        closedir(tasks);
    return found;
}

bool ct_proc_has_mapped(pid_t pid, const char *part)
{
    char *text = ct_proc_file(ct_proc_thread(pid), "maps", NULL);
    const bool found = text && strstr(text, part);
    free(text);
    return found;
}

/* Opens the folder of the thread's descriptors, which only root and users who may attach to the process can
 * open. Any user can open /proc/PID, and could lock it for ever. */
static int open_lock(pid_t thread)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)thread);
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* If the first thread has exited, only root can open its folder, so all commands lock the folder of another
 * thread. If another thread is found after locking, other commands may hold that thread's folder. */
int ct_proc_lock(pid_t pid)
{
    enum { TRIES = 100 };
    pid_t thread = ct_proc_thread(pid);
    for (int i = 0; i < TRIES; i++) {
        const int fd = open_lock(thread);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
            const int error = -errno;
            close(fd);
            return error;
        }
        const pid_t locked = thread;
        thread = ct_proc_thread(pid);
        if (thread == locked)
            return fd;
        if (fd >= 0)
            close(fd);
    }
    return -EWOULDBLOCK;
}

pid_t ct_proc_flock_holder(ino_t inode)
{
    return ct_lock_holder(&(struct ct_lock_query){ .inode = inode, .is_flock = true, .is_exclusive = true });
}

void ct_proc_describe_holder(pid_t pid, char text[CT_HOLDER_BYTES])
{
    struct stat status;
    const int fd = open_lock(ct_proc_thread(pid));
    const pid_t holder = fd >= 0 && fstat(fd, &status) == 0 ? ct_proc_flock_holder(status.st_ino) : 0;
    if (fd >= 0)
        close(fd);
    snprintf(text, CT_HOLDER_BYTES, holder > 0 ? "another command (process %d)" : "another command",
             (int)holder);
}

uint64_t ct_proc_namespace(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

bool ct_proc_is_in_first_namespace(void)
{
    return ct_proc_namespace() == 0xEFFFFFFC; /* PROC_PID_INIT_INO of the kernel */
}

bool ct_proc_shows_all(void)
{
    return ct_proc_is_in_first_namespace() && access("/proc/1/stat", R_OK) == 0;
}

bool ct_proc_exists(int32_t inner_pid, uint64_t start_ticks)
{
    DIR *all = opendir("/proc");
    bool found = !all;
    for (struct dirent *entry; all && !found && (entry = readdir(all)) != NULL;) {
        struct ct_proc_stat stat;
        struct ct_proc_status status;
        const pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;
        found = pid > 0 && ct_proc_stat(pid, &stat) == 0 && stat.start_ticks == start_ticks && !stat.ended &&
                ct_proc_status(pid, &status) == 0 && (status.inner_pid ? status.inner_pid : pid) == inner_pid;
    }
    if (all)
        closedir(all);
    return found;
}
