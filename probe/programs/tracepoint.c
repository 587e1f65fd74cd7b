#include "tracepoint.h"

#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Opens the folder where the file system is mounted. If it is not mounted, creates a private mount that no
 * other process sees. `inside` is the name of any file in the file system. */
static int open_file_system(const char *type, const char *const places[2], const char *inside)
{
    for (size_t i = 0; i < 2 && places[i]; i++) {
        const int folder = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder >= 0 && faccessat(folder, inside, F_OK, 0) == 0)
            return folder;
        if (folder >= 0)
            close(folder);
    }
    const int context = fsopen(type, FSOPEN_CLOEXEC);
    int folder = -1;
    if (context >= 0 && fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
        folder = fsmount(context, FSMOUNT_CLOEXEC, 0);
    const int error = folder < 0 ? -errno : 0;
    if (context >= 0)
        close(context);
    return error ? error : folder;
}

int ct_tracefs_open(void)
{
    return open_file_system(
        "tracefs", (const char *const[2]){ "/sys/kernel/tracing", "/sys/kernel/debug/tracing" }, "events");
}

int ct_debugfs_open(void)
{
    return open_file_system("debugfs", (const char *const[2]){ "/sys/kernel/debug" }, "kprobes");
}

FILE *ct_tracepoint_open(int tracefs, const char *group, const char *name, const char *file)
{
    char path[512];
    const int length = snprintf(path, sizeof(path), "events/%s/%s/%s", group, name, file);
    if (strchr(group, '/') || strchr(name, '/') || length < 0 || (size_t)length >= sizeof(path)) {
        errno = ENOENT;
        return NULL;
    }
    const int fd = openat(tracefs, path, O_RDONLY | O_CLOEXEC);
    FILE *opened = fd < 0 ? NULL : fdopen(fd, "r");
    if (!opened && fd >= 0)
        close(fd);
    return opened;
}

int ct_tracepoint_number(int tracefs, const char *group, const char *name)
{
    FILE *file = ct_tracepoint_open(tracefs, group, name, "id");
    if (!file)
        return -errno;
    int number;
    const bool has_number = fscanf(file, "%d", &number) == 1;
    fclose(file);
    return has_number ? number : -EIO;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int each_in_group(int tracefs, const char *group,
                         void (*take)(const char *group, const char *name, void *data), void *data)
{
    char path[512];
    struct dirent **names;
    snprintf(path, sizeof(path), "events/%s", group);
    const int count = scandirat(tracefs, path, &names, is_visible, alphasort);
    for (int i = 0; i < count; i++) {
        /* A folder without an `id` file describes a record that ftrace itself writes. */
        snprintf(path, sizeof(path), "events/%s/%s/id", group, names[i]->d_name);
        if (faccessat(tracefs, path, R_OK, 0) == 0)
            take(group, names[i]->d_name, data);
        free(names[i]);
    }
    if (count >= 0)
        free(names);
    return count < 0 && errno != ENOTDIR ? -errno : 0;
}

int ct_tracepoints_each(int tracefs, void (*take)(const char *group, const char *name, void *data),
                        void *data)
{
    struct dirent **groups;
    const int count = scandirat(tracefs, "events", &groups, is_visible, alphasort);
    int error = count < 0 ? -errno : 0;
    for (int i = 0; i < count; i++) {
        const int failed = each_in_group(tracefs, groups[i]->d_name, take, data);
        error = error ? error : failed;
        free(groups[i]);
    }
    if (count >= 0)
        free(groups);
    return error;
}

int ct_tracepoint_attach(const struct bpf_program *program, int number, uint64_t cookie,
                         struct bpf_link **link)
{
    struct perf_event_attr event = {
        .type = PERF_TYPE_TRACEPOINT,
        .size = sizeof(event),
        .config = (uint64_t)number,
        .sample_period = 1,
    };
    LIBBPF_OPTS(bpf_perf_event_opts, options, .bpf_cookie = cookie);
    /* The event must be opened for one particular processor, but the program runs on all processors. */
    const int fd = (int)syscall(SYS_perf_event_open, &event, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return -errno;
    *link = bpf_program__attach_perf_event_opts(program, fd, &options);
    const int error = *link ? 0 : -errno;
    if (error)
        close(fd);
    return error;
}
