#include "watch.h"

#include "log.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A segment that was seen: being read, or refused for good. */
struct seen {
    char path[CT_NAME_BYTES];
    struct seen *next;
};

enum { SEEN_BUCKETS = 1024 };

struct ct_watch {
    uv_fs_event_t event;
    const char *dir;
    char prefix[CT_NAME_BYTES]; /* of the session's segments, without the directory */
    struct seen *seen[SEEN_BUCKETS];
    void (*on_process)(struct ct_process *process, void *data);
    void *data;
};

static struct seen **bucket(struct ct_watch *watch, const char *path)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *path; path++)
        h = (h ^ (uint8_t)*path) * UINT64_C(0x100000001b3);
    return &watch->seen[h % SEEN_BUCKETS];
}

static struct seen *find(struct ct_watch *watch, const char *path)
{
    struct seen *seen = *bucket(watch, path);
    while (seen && strcmp(seen->path, path) != 0)
        seen = seen->next;
    return seen;
}

static struct seen *remember(struct ct_watch *watch, const char *path)
{
    struct seen *seen = calloc(1, sizeof(*seen));
    if (!seen)
        return NULL;
    struct seen **place = bucket(watch, path);
    snprintf(seen->path, sizeof(seen->path), "%s", path);
    seen->next = *place;
    *place = seen;
    return seen;
}

void ct_watch_forget(struct ct_watch *watch, const char *path)
{
    for (struct seen **link = bucket(watch, path); *link; link = &(*link)->next) {
        if (strcmp((*link)->path, path) == 0) {
            struct seen *gone = *link;
            *link = gone->next;
            free(gone);
            return;
        }
    }
}

/* Whether the maker of an incomplete segment was killed over it. Its pid may be that of a namespace, and
 * nobody's here, so that it gets time: making one takes a millisecond. */
static bool is_left_over(const char *path, pid_t pid)
{
    enum { MAKING_S = 10 };
    struct stat status;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return kill(pid, 0) != 0 && errno == ESRCH && stat(path, &status) == 0 &&
           now.tv_sec - status.st_mtim.tv_sec > MAKING_S;
}

static void consider(struct ct_watch *watch, const char *path)
{
    if (find(watch, path))
        return;
    struct ct_process *process;
    const char *reason;
    const int error = ct_process_open(path, &process, &reason);
    if (error == -EAGAIN || error == -ENOENT || error == -ENOMEM) {
        /* Not complete yet, or gone again: the hook rings when it is done. One that was killed before never
         * will. */
        const char *pid = strrchr(path, '/') + 1 + strlen(watch->prefix);
        if (error == -EAGAIN && is_left_over(path, (pid_t)strtol(pid, NULL, 10)))
            unlink(path);
        return;
    }
    if (!remember(watch, path)) {
        if (!error)
            ct_process_close(process, false);
        return;
    }
    if (error)
        ct_log("segment %s is left alone: %s", path, reason);
    else
        watch->on_process(process, watch->data);
}

/* Considers what is a segment of the session by its name in the directory. */
static void consider_name(struct ct_watch *watch, const char *name)
{
    const size_t prefix_length = strlen(watch->prefix);
    char path[CT_NAME_BYTES];
    if (strncmp(name, watch->prefix, prefix_length) != 0 || name[prefix_length] < '0' ||
        name[prefix_length] > '9')
        return;
    if ((size_t)snprintf(path, sizeof(path), "%s/%s", watch->dir, name) < sizeof(path))
        consider(watch, path);
}

void ct_watch_scan(struct ct_watch *watch)
{
    DIR *directory = opendir(watch->dir);
    if (!directory)
        return;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        consider_name(watch, entry->d_name);
    closedir(directory);
}

/* The file itself, and not all that are there: a thousand programs that start at once would else have each of
 * a million looked at. */
static void on_event(uv_fs_event_t *handle, const char *name, int events, int status)
{
    (void)events;
    struct ct_watch *watch = handle->data;
    if (status != 0 || !name)
        ct_watch_scan(watch);
    else
        consider_name(watch, name);
}

int ct_watch_create(uv_loop_t *loop, const char *dir, uint32_t uid, const char *session,
                    void (*on_process)(struct ct_process *process, void *data), void *data,
                    struct ct_watch **result)
{
    struct ct_watch *watch = calloc(1, sizeof(*watch));
    if (!watch)
        return UV_ENOMEM;
    watch->on_process = on_process;
    watch->data = data;
    char path[CT_NAME_BYTES];
    watch->dir = dir;
    ct_session_control_path(path, dir, uid, session);
    snprintf(watch->prefix, sizeof(watch->prefix), "%s.", strrchr(path, '/') + 1);
    watch->event.data = watch;
    int error = uv_fs_event_init(loop, &watch->event);
    if (!error && uv_fs_event_start(&watch->event, on_event, dir, 0) != 0)
        ct_log("%s cannot be watched: it is read once a second instead", dir);
    *result = watch;
    return error;
}

static void free_watch(uv_handle_t *handle)
{
    struct ct_watch *watch = handle->data;
    for (size_t i = 0; i < SEEN_BUCKETS; i++) {
        while (watch->seen[i]) {
            struct seen *gone = watch->seen[i];
            watch->seen[i] = gone->next;
            free(gone);
        }
    }
    free(watch);
}

void ct_watch_destroy(struct ct_watch *watch)
{
    if (watch)
        uv_close((uv_handle_t *)&watch->event, free_watch);
}
