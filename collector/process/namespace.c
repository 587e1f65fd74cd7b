#include "namespace.h"

#include "proc_file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

uint64_t ct_namespace_of(const char *process)
{
    char path[300];
    struct stat status;
    snprintf(path, sizeof(path), "/proc/%s/ns/pid", process);
    return stat(path, &status) == 0 ? status.st_ino : 0;
}

int ct_namespace_find(uint64_t pid_namespace, int32_t pid, int32_t *found)
{
    *found = 0;
    DIR *proc = opendir("/proc");
    int error = proc ? 0 : -errno;
    for (struct dirent *entry; proc && !ct_proc_is_short(error) && *found == 0 && (entry = readdir(proc));) {
        struct ct_proc_status status;
        const int32_t candidate = (int32_t)strtol(entry->d_name, NULL, 10);
        if (candidate <= 0 || ct_namespace_of(entry->d_name) != pid_namespace)
            continue;
        error = ct_proc_status(candidate, &status);
        if (!error && status.inner_pid == pid)
            *found = candidate;
    }
    if (proc)
        closedir(proc);
    return ct_proc_is_short(error) ? error : 0;
}
