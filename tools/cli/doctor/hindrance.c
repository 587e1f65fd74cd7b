#include "hindrance.h"

#include "printable.h"
#include "proc.h"
#include "session_names.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* The length of the file of a segment with one thread. */
#define FILE_BYTES_MIN (CT_LANE_OFFSET + CT_LANE_HEADER_BYTES + CT_CHUNK_BYTES)
/* The hook maps at most a sixteenth of what is left of the limit on address space (hook/base/bound.c). A
 * segment needs the most. */
enum { PART_OF_ADDRESSES = 16 };

/* Describes a process, and the text that explains the hindrance. */
struct process {
    pid_t pid, thread;
    uint32_t uid;
    const char *shm_dir;
    char *text;
};

__attribute__((format(printf, 2, 3))) static bool explain(const struct process *process, const char *format,
                                                          ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(process->text, CT_HINDRANCE_BYTES, format, arguments);
    va_end(arguments);
    return true;
}

/* The process's user namespace may have no ID for its user. The hook then does not know its own user. */
static bool is_of_another_user(const struct process *process)
{
    struct ct_proc_status status;
    if (ct_proc_status(process->pid, &status) != 0)
        return false;
    const uint32_t uid = ct_session_uid_of(status.effective);
    if (uid != process->uid)
        return explain(process,
                       "it runs as user %u, and only a daemon of this user or the system daemon records it: "
                       "start the daemon as this user",
                       uid);
    struct stat ours, its;
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)process->thread);
    if (stat("/proc/self/ns/user", &ours) != 0 || stat(path, &its) != 0 || ours.st_ino == its.st_ino)
        return false;
    char *map = ct_proc_file(process->thread, "uid_map", NULL);
    bool is_mapped = !map;
    for (char *at = map; at && *at && !is_mapped; at += *at == '\n') {
        strtoull(at, &at, 10);
        const uint64_t outside = strtoull(at, &at, 10), count = strtoull(at, &at, 10);
        is_mapped = status.effective - outside < count || *at != '\n';
    }
    free(map);
    return !is_mapped && explain(process, "its user has no ID in its user namespace: map the user (unshare "
                                          "--map-current-user, podman --userns=keep-id)");
}

static bool has_no_folder(const struct process *process)
{
    char path[256], room[32];
    struct statvfs system;
    snprintf(path, sizeof(path), "/proc/%d/root%s", (int)process->thread, process->shm_dir);
    if (statvfs(path, &system) != 0)
        return false;
    if (system.f_flag & ST_RDONLY)
        return explain(process,
                       "its %s is read-only: mount it writable, or choose another directory with "
                       "--shm-dir",
                       process->shm_dir);
    const uint64_t free_bytes = ct_hindrance_room(system.f_frsize, system.f_blocks, system.f_bavail);
    return free_bytes < CT_HINDRANCE_ROOM_MIN &&
           explain(process,
                   "its %s has only %s free for tracing (half of the file system is reserved for others): "
                   "free space, or enlarge it (docker run --shm-size=1g)",
                   process->shm_dir, ct_size_text(room, free_bytes));
}

/* Returns how many more files the process can open. */
static uint64_t free_descriptors(const struct process *process, uint64_t limit)
{
    char path[64];
    uint64_t used = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)process->thread);
    DIR *files = opendir(path);
    if (!files)
        return UINT64_MAX;
    for (const struct dirent *entry; (entry = readdir(files)) != NULL;)
        used += entry->d_name[0] != '.' && strtoull(entry->d_name, NULL, 10) < limit;
    closedir(files);
    return limit - used;
}

/* The hook opens its files for a moment, and only when it finds a daemon. */
static bool has_no_descriptors(const struct process *process)
{
    enum { NEEDED = 3 };
    struct rlimit files;
    return prlimit(process->pid, RLIMIT_NOFILE, NULL, &files) == 0 &&
           free_descriptors(process, files.rlim_cur) < NEEDED &&
           explain(process,
                   "its limit on open files (ulimit -n, RLIMIT_NOFILE) is %" PRIu64
                   ", and fewer than %d are left for the hook: raise the limit",
                   (uint64_t)files.rlim_cur, NEEDED);
}

static bool has_low_limit(const struct process *process)
{
    char status[4096], bytes[2][32];
    struct rlimit files, all, data;
    if (prlimit(process->pid, RLIMIT_FSIZE, NULL, &files) != 0 ||
        prlimit(process->pid, RLIMIT_AS, NULL, &all) != 0 ||
        prlimit(process->pid, RLIMIT_DATA, NULL, &data) != 0)
        return false;
    if (files.rlim_cur < FILE_BYTES_MIN)
        return explain(process, "its file size limit (ulimit -f) is %s, too small for a ring: raise it",
                       ct_size_text(bytes[0], files.rlim_cur));
    const rlim_t limit = all.rlim_cur < data.rlim_cur ? all.rlim_cur : data.rlim_cur;
    const char *size = ct_proc_read(process->pid, "status", status, sizeof(status)) == 0
                           ? strstr(status, "\nVmSize:")
                           : NULL;
    const uint64_t used = size ? strtoull(size + strlen("\nVmSize:"), NULL, 10) * 1024 : 0;
    const uint64_t left = limit > used ? limit - used : 0;
    return limit != RLIM_INFINITY && left / PART_OF_ADDRESSES < CT_LANE_OFFSET &&
           explain(
               process,
               "its limit on memory (ulimit -%c) is %s, of which %s are in use, and the hook maps at most "
               "a sixteenth of the rest: raise the limit",
               all.rlim_cur <= data.rlim_cur ? 'v' : 'd', ct_size_text(bytes[0], limit),
               ct_size_text(bytes[1], used));
}

bool ct_hindrance_find(pid_t pid, pid_t thread, uint32_t uid, const char *shm_dir,
                       char text[CT_HINDRANCE_BYTES])
{
    const struct process process = { pid, thread, uid, shm_dir, text };
    text[0] = '\0';
    return is_of_another_user(&process) || has_no_folder(&process) || has_low_limit(&process) ||
           has_no_descriptors(&process);
}

uint64_t ct_hindrance_room(uint64_t block_bytes, uint64_t blocks, uint64_t available)
{
    if (blocks == 0)
        return UINT64_MAX; /* such a file system has no size limit */
    const uint64_t free_bytes = available * block_bytes, leaves = ct_segment_leaves(blocks * block_bytes);
    return free_bytes > leaves ? free_bytes - leaves : 0;
}
