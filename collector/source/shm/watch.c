#include "watch.h"

#include "descriptor_share.h"
#include "log.h"
#include "proc_file.h"
#include "real_user.h"
#include "shm_segment.h"
#include "test_point.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A known segment file, which is either being read or refused for as long as it exists. */
struct seen {
    char path[CT_NAME_BYTES];
    struct seen *next;
    uint32_t scan; /* the last scan that found the file in the directory */
    bool refused;
    struct ct_user *user;           /* owner of a refused file; NULL for the daemon's own user */
    struct ct_shm_process *process; /* the process, if its segment is being read */
};

enum { SEEN_BUCKETS = 1024 };

struct ct_watch {
    uv_fs_event_t event;
    const char *dir;
    uint32_t uid; /* the session's user and name */
    char session[CT_SESSION_MAX + 1];
    bool system;
    uint32_t own_uid; /* the daemon's user, as the kernel shows the owner of a file */
    struct ct_users users;
    struct ct_holding held; /* by all users */
    uint32_t scan;
    struct seen *seen[SEEN_BUCKETS];
    uint32_t open_max; /* maximum number of processes, given the available descriptors and mappings */
    uint32_t waiting;  /* segments for which this scan had no descriptors or mappings */
    bool is_short;     /* a shortage was logged */
    uint64_t refused;
    uint32_t ignoring; /* files that do not belong to the user in their name, in this scan so far */
    uint32_t ignored;  /* in the last scan */
    bool is_ignoring;  /* such a file was logged */
    const char *(*on_process)(struct ct_shm_process *process, void *data);
    ct_on_refused *on_refused;
    void *data;
};

/* Reads the kernel's limit vm.max_map_count. */
static uint32_t mappings_allowed(void)
{
    char text[32] = "";
    FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
    if (file && !fgets(text, sizeof(text), file))
        text[0] = '\0';
    if (file)
        fclose(file);
    const unsigned long count = strtoul(text, NULL, 10);
    return count == 0 || count > INT32_MAX ? 65530 : (uint32_t)count;
}

/* Returns the number of processes that can be read at once. Each process needs two descriptors, and four
 * mappings once its segment is truncated. Some mappings are reserved for the database and blocks of lanes. */
static uint32_t processes_allowed(bool system)
{
    enum { MAPPINGS = 4, OWN_MAPPINGS = 4096 };
    const uint32_t mappings = mappings_allowed();
    return ct_descriptors_for_processes(
        mappings > 2 * OWN_MAPPINGS ? (mappings - OWN_MAPPINGS) / MAPPINGS : OWN_MAPPINGS / MAPPINGS, system);
}

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
    seen->scan = watch->scan;
    seen->next = *place;
    *place = seen;
    return seen;
}

void ct_watch_forget(struct ct_watch *watch, const char *path, struct ct_user *user)
{
    ct_share_give(&watch->held, user ? &user->loop_has : NULL, CT_SHARED_SEGMENTS, 1);
    for (struct seen **link = bucket(watch, path); *link; link = &(*link)->next) {
        if (strcmp((*link)->path, path) == 0) {
            struct seen *gone = *link;
            *link = gone->next;
            free(gone);
            return;
        }
    }
}

/* Returns whether the process that was creating an incomplete segment was killed. Creating a segment takes a
 * millisecond. This function allows far longer, because a live process in another namespace may seem not to
 * exist. */
static bool is_left_over(const char *path, pid_t pid)
{
    enum { MAKING_S = 10 };
    struct stat status;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return kill(pid, 0) != 0 && errno == ESRCH && lstat(path, &status) == 0 && S_ISREG(status.st_mode) &&
           now.tv_sec - status.st_mtim.tv_sec > MAKING_S;
}

/* Returns whether a user's share has room for the file. NULL means the daemon's own user, who has no
 * share. */
static bool may_take(struct ct_watch *watch, struct ct_user *user, const char *path)
{
    struct ct_holding *his = user ? &user->loop_has : NULL;
    if (!ct_share_has_room(&watch->held, his, CT_SHARED_SEGMENTS, watch->open_max)) {
        watch->waiting++;
        if (user) {
            user->segments_wait++;
            ct_user_complain(
                user, "the user already has the maximum number of segments; it waits until one ends", path);
        }
        return false;
    }
    if (!user)
        return true;
    if (!ct_share_has_room(&watch->held, his, CT_SHARED_REFUSED, 0)) {
        ct_user_complain(user, "too many files of this user are not segments", path);
        return false;
    }
    return ct_share_take(&watch->held, his, CT_SHARED_LOOKS, 0); /* retried in the next scan */
}

static void refuse(struct ct_watch *watch, struct seen *seen, int32_t pid, struct ct_user *user,
                   const char *reason)
{
    watch->on_refused(pid, user ? user->uid : watch->own_uid, reason, watch->data);
    seen->refused = true;
    seen->user = user;
    watch->refused++;
    if (user) {
        ct_share_take(&watch->held, &user->loop_has, CT_SHARED_REFUSED, 0);
        ct_user_complain(user, reason, seen->path);
    } else {
        ct_log(CT_LOG_segment_refused, "segment %s is not read: %s", seen->path, reason);
    }
}

static void consider(struct ct_watch *watch, const char *path, int32_t pid, struct ct_user *user)
{
    /* These errors may disappear by the next scan without the owner's help. */
    static const int later[] = { -EAGAIN, -ENOENT, -ENOMEM, -EMFILE, -ENFILE, -EBUSY };
    struct seen *seen = find(watch, path);
    if (seen)
        seen->scan = watch->scan;
    if (seen || !may_take(watch, user, path))
        return;
    struct ct_shm_process *process;
    const char *reason;
    const int error = ct_shm_open(path, user, &process, &reason);
    /* The segment is not complete yet. The hook will ring the doorbell when the segment is complete, unless
     * the hook is killed first. */
    if (error == -EAGAIN && is_left_over(path, pid)) {
        CT_TEST_POINT("watch.left_over");
        unlink(path);
    }
    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
        if (error == later[i])
            return;
    }
    seen = remember(watch, path);
    if (seen && !error) {
        reason = process->who.pid == pid ? watch->on_process(process, watch->data)
                                         : "its file name and its contents name different processes";
        if (!reason) {
            seen->process = process;
            ct_share_take(&watch->held, user ? &user->loop_has : NULL, CT_SHARED_SEGMENTS, watch->open_max);
            CT_TEST_POINT("watch.adopted");
            return;
        }
    }
    if (!error)
        ct_shm_close(process, false);
    if (seen)
        refuse(watch, seen, pid, user, reason);
}

/* Counts a file that does not belong to the user in its name. */
static void ignore(struct ct_watch *watch, const char *path, uint32_t owner)
{
    struct ct_user *user = watch->system ? ct_users_find(&watch->users, owner) : NULL;
    if (user) /* charge the owner's share of the log */
        ct_user_complain(user, "its file name contains the ID of another user", path);
    else if (!watch->system && !watch->is_ignoring)
        ct_log(CT_LOG_segment_ignored,
               "file %s is ignored, because it belongs to user %u; `status` counts such files (ignored)",
               path, owner);
    watch->is_ignoring = true;
    watch->ignoring++;
}

/* Returns whether a file belongs to the user in its name. In the system session, sets *user to this user.
 * Other files are neither opened nor remembered, because any user can create any number of them. */
static bool is_of_named(struct ct_watch *watch, uint32_t named, const char *path, struct ct_user **user)
{
    struct stat status;
    *user = NULL;
    if (ct_real_lstat(path, &status) != 0)
        return false;
    if (status.st_uid != (watch->system ? named : watch->own_uid)) {
        ignore(watch, path, status.st_uid);
        return false;
    }
    if (watch->system)
        *user = ct_users_find(&watch->users, status.st_uid);
    return *user || !watch->system;
}

/* Considers a file if its name is a segment name of the session. */
static void consider_name(struct ct_watch *watch, const char *name)
{
    struct ct_session_file file;
    char path[CT_NAME_BYTES];
    if (!ct_session_file_parse(name, &file) || file.kind != CT_FILE_SEGMENT || file.system != watch->system ||
        strcmp(file.session, watch->session) != 0 || (!watch->system && file.uid != watch->uid) ||
        (size_t)snprintf(path, sizeof(path), "%s/%s", watch->dir, name) >= sizeof(path))
        return;
    struct ct_user *user;
    if (is_of_named(watch, file.uid, path, &user))
        consider(watch, path, file.pid, user);
}

/* Marks a running process whose segment was removed, because the next daemon would not find that segment. */
static void note_gone(struct seen *seen)
{
    struct ct_shm_process *process = seen->process;
    if (!process || atomic_load(&process->who.dead) || atomic_load(&process->unnamed) ||
        ct_shm_is_at(process, seen->path))
        return;
    atomic_store(&process->unnamed, true);
    ct_log(CT_LOG_segment_gone,
           "segment %s was removed: calls already in it are stored, and process %d will make a new segment",
           seen->path, process->who.pid);
}

/* Forgets refused files that are no longer in the directory. */
static void forget_gone(struct ct_watch *watch)
{
    for (size_t i = 0; i < SEEN_BUCKETS; i++) {
        for (struct seen **link = &watch->seen[i]; *link;) {
            struct seen *seen = *link;
            if (!seen->refused || seen->scan == watch->scan) {
                if (seen->scan != watch->scan)
                    note_gone(seen);
                link = &seen->next;
                continue;
            }
            if (seen->user)
                ct_share_give(&watch->held, &seen->user->loop_has, CT_SHARED_REFUSED, 1);
            *link = seen->next;
            free(seen);
        }
    }
}

/* Logs that processes are waiting. Their calls stay in the rings; once the rings are full, calls are only
 * counted. */
static void note_waiting(struct ct_watch *watch)
{
    if (watch->waiting > 0 && !watch->is_short)
        ct_log(CT_LOG_descriptors_short,
               "%u processes wait: there are descriptors and mappings for only %u processes at once; raise "
               "the daemon's limits (ulimit -Hn, LimitNOFILE=, vm.max_map_count)",
               watch->waiting, watch->open_max);
    else if (watch->waiting == 0 && watch->is_short)
        ct_log(CT_LOG_descriptors_back, "no processes wait for descriptors or mappings any more");
    watch->is_short = watch->waiting > 0;
}

bool ct_watch_scan(struct ct_watch *watch)
{
    DIR *directory = opendir(watch->dir);
    if (!directory)
        return !ct_proc_is_short(-errno); /* after other errors, there is no directory and no segment */
    watch->scan++;
    watch->waiting = watch->ignoring = 0;
    ct_users_look_anew(&watch->users, &watch->held);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        consider_name(watch, entry->d_name);
    closedir(directory);
    watch->ignored = watch->ignoring;
    watch->is_ignoring = watch->ignored > 0;
    note_waiting(watch);
    forget_gone(watch);
    return true;
}

uint64_t ct_watch_refused(const struct ct_watch *watch)
{
    return watch->refused;
}

uint32_t ct_watch_ignored(const struct ct_watch *watch)
{
    return watch->ignored;
}

uint32_t ct_watch_waiting(const struct ct_watch *watch)
{
    return watch->waiting;
}

uint32_t ct_watch_waiting_of(const struct ct_watch *watch, uint32_t uid)
{
    for (const struct ct_user *user = watch->users.first; user; user = user->next) {
        if (user->uid == uid)
            return user->segments_wait;
    }
    return 0;
}

/* Checks only this file. If a thousand programs started at once, a scan for each would read a million
 * names. */
static void on_event(uv_fs_event_t *handle, const char *name, int events, int status)
{
    (void)events;
    struct ct_watch *watch = handle->data;
    if (status != 0 || !name)
        ct_watch_scan(watch);
    else
        consider_name(watch, name);
}

int ct_watch_create(uv_loop_t *loop, const char *dir, uint32_t uid, const char *session, bool system,
                    const char *(*on_process)(struct ct_shm_process *process, void *data),
                    ct_on_refused *on_refused, void *data, struct ct_watch **result)
{
    struct ct_watch *watch = calloc(1, sizeof(*watch));
    if (!watch)
        return UV_ENOMEM;
    watch->on_process = on_process;
    watch->on_refused = on_refused;
    watch->data = data;
    watch->open_max = processes_allowed(system);
    watch->system = system;
    watch->dir = dir;
    watch->uid = uid;
    watch->own_uid = ct_real_euid();
    snprintf(watch->session, sizeof(watch->session), "%s", session);
    watch->event.data = watch;
    int error = uv_fs_event_init(loop, &watch->event);
    const int unwatched = error ? 0 : uv_fs_event_start(&watch->event, on_event, dir, 0);
    if (unwatched)
        ct_log(CT_LOG_folder_unwatched, "cannot watch the directory %s: %s; it is read once a second instead",
               dir, uv_strerror(unwatched));
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
    ct_users_finish(&watch->users);
    free(watch);
}

void ct_watch_destroy(struct ct_watch *watch)
{
    if (watch)
        uv_close((uv_handle_t *)&watch->event, free_watch);
}
