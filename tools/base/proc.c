#include "proc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* Fields 3, 20 and 22 of /proc/PID/stat, counted from behind the last ')': a name may hold spaces. */
bool ct_proc_read(pid_t pid, struct ct_proc *proc)
{
    enum { STATE = 3, THREADS = 20, START = 22 };
    unsigned long threads = 0;
    *proc = (struct ct_proc){ 0 };
    char *text = ct_proc_file(pid, "stat", NULL);
    const char *at = text ? strrchr(text, ')') : NULL;
    for (int field = STATE; at && field <= START; field++) {
        at = strchr(at + 1, ' ');
        if (at && field == STATE)
            proc->state = at[1];
        else if (at && field == THREADS)
            threads = strtoul(at, NULL, 10);
        else if (at && field == START)
            proc->start_ticks = strtoull(at, NULL, 10);
    }
    free(text);
    /* A first thread that has ended is a zombie as long as others are the process. */
    proc->ended = (proc->state == 'Z' || proc->state == 'X') && threads < 2;
    return at != NULL;
}

bool ct_proc_is_stopped(pid_t pid)
{
    struct ct_proc proc;
    return ct_proc_read(pid, &proc) && (proc.state == 'T' || proc.state == 't');
}

/* NStgid, since Linux 4.1: a number for each pid namespace that the process is seen in, its own last. */
bool ct_proc_identify(pid_t pid, struct ct_proc_identity *identity)
{
    unsigned effective = 0;
    *identity = (struct ct_proc_identity){ .inner_pid = pid };
    char *text = ct_proc_file(pid, "status", NULL);
    const char *uids = text ? strstr(text, "\nUid:") : NULL;
    char *pids = text ? strstr(text, "\nNStgid:") : NULL;
    const bool known = uids && sscanf(uids, "\nUid: %*u %u", &effective) == 1;
    identity->uid = effective;
    if (pids) {
        pids++;
        pids[strcspn(pids, "\n")] = '\0';
        const char *last = strrchr(pids, '\t');
        identity->inner_pid = last ? (int32_t)strtol(last, NULL, 10) : pid;
    }
    free(text);
    return known;
}

pid_t ct_proc_thread(pid_t pid)
{
    struct ct_proc proc;
    if (!ct_proc_read(pid, &proc) || proc.ended || (proc.state != 'Z' && proc.state != 'X'))
        return pid;
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    pid_t found = pid;
    for (struct dirent *task; tasks && found == pid && (task = readdir(tasks)) != NULL;) {
        const pid_t thread = (pid_t)strtol(task->d_name, NULL, 10);
        if (thread > 0 && ct_proc_read(thread, &proc) && proc.state != 'Z' && proc.state != 'X')
            found = thread; /* /proc has its files by that number, too, and lists it not */
    }
    if (tasks)
        closedir(tasks);
    return found;
}

uint64_t ct_proc_namespace(void)
{
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

bool ct_proc_shows_all(void)
{
    const uint64_t first = 0xEFFFFFFC; /* PROC_PID_INIT_INO of the kernel */
    return ct_proc_namespace() == first && access("/proc/1/stat", R_OK) == 0;
}

bool ct_proc_exists(int32_t inner_pid, uint64_t start_ticks)
{
    DIR *all = opendir("/proc");
    bool found = !all;
    for (struct dirent *entry; all && !found && (entry = readdir(all)) != NULL;) {
        struct ct_proc proc;
        struct ct_proc_identity identity;
        const pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;
        found = pid > 0 && ct_proc_read(pid, &proc) && proc.start_ticks == start_ticks && !proc.ended &&
                ct_proc_identify(pid, &identity) && identity.inner_pid == inner_pid;
    }
    if (all)
        closedir(all);
    return found;
}
