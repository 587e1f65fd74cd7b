#include "namespace.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t ct_namespace_of(const char *process)
{
    char path[300];
    struct stat status;
    snprintf(path, sizeof(path), "/proc/%s/ns/pid", process);
    return stat(path, &status) == 0 ? status.st_ino : 0;
}

/* The last number behind "NSpid:": what the process itself takes for its pid. Linux 4.1. */
static int32_t inner_pid(const char *process)
{
    char path[64], text[4096];
    snprintf(path, sizeof(path), "/proc/%s/status", process);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    const ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    char *line = strstr(text, "\nNSpid:");
    if (!line)
        return -1;
    line += strlen("\nNSpid:");
    line[strcspn(line, "\n")] = '\0';
    const char *last = strrchr(line, '\t');
    return last ? (int32_t)strtol(last + 1, NULL, 10) : -1;
}

int32_t ct_namespace_find(uint64_t pid_namespace, int32_t pid)
{
    DIR *proc = opendir("/proc");
    int32_t found = -1;
    for (struct dirent *entry; proc && found < 0 && (entry = readdir(proc));) {
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            ct_namespace_of(entry->d_name) == pid_namespace && inner_pid(entry->d_name) == pid)
            found = (int32_t)strtol(entry->d_name, NULL, 10);
    }
    if (proc)
        closedir(proc);
    return found;
}
