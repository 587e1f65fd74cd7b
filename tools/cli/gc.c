/* Implements `cudatrace gc`, which removes files that killed daemons and their traced programs have left in
 * /dev/shm. Only this user's files whose names match ours exactly are removed, and only under the session's
 * lock. A daemon that starts in the meantime waits for the lock, and hooks do not mistake the lock for a
 * daemon's. Segments that the system daemon has left belong to all users, and only root can remove them. */
#include "printable.h"
#include "proc.h"
#include "room.h"
#include "session_choice.h"
#include "session_files.h"
#include "subcommand.h"

#include "real_user.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct gc {
    struct ct_session_choice choice;
    bool dry_run, force;
    struct ct_session_file *files; /* sorted by session, with each session's control segment last */
    size_t count, room;
    unsigned removed, kept, failed;
    uint64_t removed_bytes, kept_bytes;
};

/* Whether to remove or keep a file, and why. */
struct verdict {
    bool remove;
    char why[256];
};

#define KEEP(...)   verdict_of(false, __VA_ARGS__)
#define REMOVE(...) verdict_of(true, __VA_ARGS__)
__attribute__((format(printf, 2, 3))) static struct verdict verdict_of(bool remove, const char *format, ...)
{
    struct verdict verdict = { .remove = remove };
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(verdict.why, sizeof(verdict.why), format, arguments);
    va_end(arguments);
    return verdict;
}

/* ---- processes ---- */

enum life { GONE, LET_GO /* running, but as another program or with another segment */, RUNS, UNKNOWN };

/* Checks whether a process in our PID namespace is alive. */
static enum life life_here(int32_t pid, uint64_t start_ticks)
{
    struct ct_proc_stat stat;
    if (kill(pid, 0) != 0 && errno == ESRCH)
        return GONE;
    if (ct_proc_stat(pid, &stat) != 0)
        return UNKNOWN;
    const bool another = start_ticks != 0 && stat.start_ticks != start_ticks;
    return another || stat.ended ? GONE : RUNS;
}

/* Checks whether a process in another PID namespace is alive. A process that is not found may still be
 * running, unless we can see all processes. */
static enum life life_elsewhere(int32_t pid, uint64_t start_ticks)
{
    if (!ct_proc_shows_all() || start_ticks == 0)
        return UNKNOWN;
    return ct_proc_exists(pid, start_ticks) ? RUNS : GONE;
}

/* Checks whether the process that created a segment is alive. If the segment is locked, the process is
 * running. If the segment was never locked, its pid and start time show whether the process is running. If
 * the lock was released, pid and start time distinguish a process that released its segment from one that
 * exited. */
static enum life life_of(const struct ct_segment *segment, int fd, bool ours)
{
    switch (ct_segment_hold(segment, fd)) {
    case CT_SEGMENT_HELD:
        return RUNS;
    case CT_SEGMENT_LET_GO:
        return ours && life_here(segment->pid, segment->process_start) == RUNS ? LET_GO : GONE;
    case CT_SEGMENT_HOLD_UNKNOWN:
        break;
    }
    return ours ? life_here(segment->pid, segment->process_start)
                : life_elsewhere(segment->pid, segment->process_start);
}

/* ---- verdicts ---- */

/* Returns the number of bytes of records that have been published but not consumed. */
static uint64_t unstored_bytes(int fd, const struct ct_segment *segment)
{
    uint64_t slots = 0;
    struct ct_lane lane;
    for (uint32_t i = 0; ct_session_file_lane(fd, segment, i, &lane); i++)
        slots += ct_lane_state(&lane).position - lane.tail;
    return slots * CT_SLOT_BYTES;
}

/* Decides whether to remove a segment without a header. Creating a segment takes a millisecond, so one that
 * is older than MAKING_S was abandoned. The pid in its name may be from another PID namespace, and may not
 * exist here. */
static struct verdict judge_incomplete(const struct ct_session_file *file, const struct ct_segment *segment,
                                       int fd, const struct stat *status)
{
    enum { MAKING_S = 10 };
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (ct_segment_hold(segment, fd) == CT_SEGMENT_HELD || kill(file->pid, 0) == 0 || errno != ESRCH ||
        now.tv_sec - status->st_mtim.tv_sec <= MAKING_S)
        return KEEP("process %d is creating it", file->pid);
    return REMOVE("never completed, and its creator has ended");
}

static struct verdict judge_header(const struct gc *gc, const struct ct_session_file *file, int fd,
                                   const struct stat *status)
{
    static struct ct_segment segment;
    char size[32];
    if ((uint64_t)status->st_size < CT_SEGMENT_BYTES_MIN ||
        pread(fd, &segment, sizeof(segment), 0) != (ssize_t)sizeof(segment) || segment.magic == 0)
        return judge_incomplete(file, &segment, fd, status);
    if (segment.magic != CT_SEGMENT_MAGIC || segment.version != CT_PROTO_VERSION)
        return KEEP(
            "belongs to another version of cudatrace: only that version can find out whether it is in use");
    if (segment.ready != 1)
        return judge_incomplete(file, &segment, fd, status);
    const bool ours = segment.pid_namespace == 0 || segment.pid_namespace == ct_proc_namespace();
    const char *where = ours ? "" : " of another pid namespace";
    const enum life life = life_of(&segment, fd, ours);
    if (life == RUNS)
        return KEEP("process %d%s runs", segment.pid, where);
    if (life == UNKNOWN)
        return KEEP("process %d%s may still run", segment.pid, where);
    char whose[96];
    snprintf(whose, sizeof(whose), "process %d%s %s", segment.pid, where,
             life == LET_GO ? "still runs, but no longer uses it" : "is gone");
    if (!ct_segment_valid(&segment))
        return REMOVE("damaged, and %s", whose);
    const uint64_t unstored = unstored_bytes(fd, &segment);
    if (unstored > 0 && !gc->force)
        return KEEP("%s of records are not stored: cudatraced --session %s --db FILE stores them, --force "
                    "removes them",
                    ct_size_text(size, unstored), file->session);
    return unstored > 0 ? REMOVE("%s; %s of records were never stored", whose, ct_size_text(size, unstored))
                        : REMOVE("%s", whose);
}

static struct verdict judge_segment(const struct gc *gc, const struct ct_session_file *file, const char *path,
                                    const struct stat *status)
{
    struct stat opened;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct verdict verdict = KEEP("it cannot be read");
    if (fd >= 0 && fstat(fd, &opened) == 0 && opened.st_ino == status->st_ino)
        verdict = judge_header(gc, file, fd, status);
    if (fd >= 0)
        close(fd);
    return verdict;
}

/* Decides whether to remove a file. `kept` counts the session's segments that are kept. The next daemon needs
 * the control segment to read these segments. */
static struct verdict judge(const struct gc *gc, const struct ct_session_file *file, const char *path,
                            const struct stat *status, unsigned kept)
{
    const bool is_socket = file->kind == CT_FILE_SOCKET || file->kind == CT_FILE_BELL;
    const bool right_owner =
        status->st_uid == ct_real_euid() || (file->system && status->st_uid == file->uid);
    if (!right_owner || !(is_socket ? S_ISSOCK(status->st_mode) : S_ISREG(status->st_mode)))
        return KEEP("not owned by this user, or not the type of file that its name implies");
    const int holder = file->kind == CT_FILE_PROBE ? (int)ct_proc_flock_holder(status->st_ino) : 0;
    switch (file->kind) {
    case CT_FILE_SEGMENT:
        return judge_segment(gc, file, path, status);
    case CT_FILE_SOCKET:
    case CT_FILE_BELL:
        return REMOVE("no daemon serves the session");
    case CT_FILE_PROBE:
        return holder > 0 ? KEEP("the probe %d uses it", holder) : REMOVE("its probe was killed");
    case CT_FILE_CONTROL:
        break;
    }
    return kept ? KEEP("the next daemon needs it for the remaining segments")
                : REMOVE("no daemon serves the session");
}

/* ---- a session ---- */

static void tell(struct gc *gc, const struct ct_session_file *file, const char *path, uint64_t bytes,
                 struct verdict verdict)
{
    char size[32];
    ct_size_text(size, bytes);
    if (verdict.remove && !gc->dry_run && unlink(path) != 0 && errno != ENOENT) {
        ct_fail(EXIT_FAILURE, "gc: cannot remove %s: %s", path, strerror(errno));
        gc->failed++;
        return;
    }
    const char *done = !verdict.remove ? "kept" : gc->dry_run ? "would remove" : "removed";
    printf("%-12s %s, %s: %s\n", done, file->name, size, verdict.why);
    *(verdict.remove ? &gc->removed : &gc->kept) += 1;
    *(verdict.remove ? &gc->removed_bytes : &gc->kept_bytes) += bytes;
}

/* Takes the session's lock with F_SETLK, so that the lock belongs to this process. F_GETLK reports the lock's
 * pid, by which hooks distinguish it from a daemon's lock (F_OFD_SETLK). Returns a descriptor, or -1 if a
 * daemon or another gc holds the lock. If there was no control segment, creates an empty one to lock, and
 * sets *made. */
static int take_lock(const char *control_path, bool *made)
{
    for (;;) {
        struct stat held, named;
        struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
        const int fd = open(control_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        if (fd < 0)
            return -1;
        if (ct_real_fstat(fd, &held) != 0 || !S_ISREG(held.st_mode) || held.st_uid != ct_real_euid() ||
            fcntl(fd, F_SETLK, &whole) != 0) {
            close(fd);
            return -1;
        }
        if (stat(control_path, &named) == 0 && named.st_ino == held.st_ino) {
            *made = fstat(fd, &held) == 0 && held.st_size == 0;
            return fd;
        }
        close(fd); /* the lock's previous holder has removed the file */
    }
}

static void sweep(struct gc *gc, const struct ct_session_file *first, size_t count)
{
    static struct ct_control control;
    char path[PATH_MAX];
    struct stat status;
    unsigned kept = 0;
    bool made = false;
    ct_session_control_path(path, gc->choice.shm_dir, ct_session_uid(), first->session);
    const bool served = ct_control_read(path, ct_session_uid(), &control) == CT_SERVED;
    const int lock = served || gc->dry_run ? -1 : take_lock(path, &made);
    for (const struct ct_session_file *file = first; file < first + count; file++) {
        snprintf(path, sizeof(path), "%s/%s", gc->choice.shm_dir, file->name);
        if (ct_real_lstat(path, &status) != 0)
            continue;
        struct verdict verdict;
        if (served)
            verdict = KEEP("daemon %d serves the session", control.daemon_pid);
        else if (lock < 0 && !gc->dry_run)
            verdict = KEEP("the session's lock is not available");
        else
            verdict = judge(gc, file, path, &status, kept);
        kept += file->kind == CT_FILE_SEGMENT && !verdict.remove;
        /* Once the locked file is unlinked, a file of the same name may belong to a new daemon. */
        made &= !(file->kind == CT_FILE_CONTROL && verdict.remove);
        tell(gc, file, path, (uint64_t)status.st_blocks * 512, verdict);
    }
    if (lock >= 0 && made) {
        ct_session_control_path(path, gc->choice.shm_dir, ct_session_uid(), first->session);
        unlink(path);
    }
    if (lock >= 0)
        close(lock);
}

/* ---- the command ---- */

static int compare(const void *left, const void *right)
{
    const struct ct_session_file *a = left, *b = right;
    const int by_session = strcmp(a->session, b->session);
    if (by_session)
        return by_session;
    /* Sort segments first, then sockets, then the control segment, which must be removed last because the
     * session's lock is on it. */
    return a->kind != b->kind ? (a->kind < b->kind ? 1 : -1) : strcmp(a->name, b->name);
}

/* Returns whether the file belongs to one of this user's sessions. The system session belongs to root and
 * holds all users' segments. Users other than root do not touch even their own segments in the system
 * session. */
static bool is_ours(const struct gc *gc, const struct ct_session_file *file)
{
    if (gc->choice.session_option && strcmp(file->session, gc->choice.session) != 0)
        return false;
    return file->system ? ct_real_euid() == 0 : file->uid == ct_session_uid();
}

static bool list_files(struct gc *gc)
{
    struct ct_session_file file;
    DIR *folder = opendir(gc->choice.shm_dir);
    bool complete = folder != NULL;
    while (ct_session_files_next(folder, &file)) {
        if (!is_ours(gc, &file))
            continue;
        complete &= ct_make_room(&gc->files, gc->count, &gc->room, sizeof(file));
        if (complete)
            gc->files[gc->count++] = file;
    }
    return complete;
}

static int clear_up(struct gc *gc)
{
    char removed[32], kept[32];
    if (!list_files(gc))
        return ct_fail(EXIT_FAILURE, "gc: cannot read %s: %s", gc->choice.shm_dir, strerror(errno));
    if (gc->count)
        qsort(gc->files, gc->count, sizeof(*gc->files), compare);
    for (size_t i = 0, next; i < gc->count; i = next) {
        for (next = i + 1; next < gc->count && strcmp(gc->files[next].session, gc->files[i].session) == 0;)
            next++;
        sweep(gc, gc->files + i, next - i);
    }
    free(gc->files);
    printf("%s %u, %s; kept %u, %s\n", gc->dry_run ? "would remove" : "removed", gc->removed,
           ct_size_text(removed, gc->removed_bytes), gc->kept, ct_size_text(kept, gc->kept_bytes));
    return gc->failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int gc(int argc, char **argv)
{
    struct gc gc = { 0 };
    const struct ct_option options[] = {
        CT_OPTION_SESSION(&gc.choice, "only this session (default: all sessions of this user)"),
        CT_OPTION_SHM_DIR(&gc.choice),
        { "dry-run", NULL, "print what would be removed, and remove nothing", &gc.dry_run },
        { "force", NULL, "also remove records of processes that have ended, even if not stored", &gc.force },
        { 0 }
    };
    const struct ct_usage usage = {
        .options = options,
        .about = "Removes the files that killed daemons have left in /dev/shm: control segments and\n"
                 "sockets of sessions without a daemon, and segments of processes that have ended.\n"
                 "Keeps files of sessions that a daemon serves, segments that a process uses or may\n"
                 "use, and records not stored yet (a new daemon of the session stores them).\n",
        .more = "Exit status: 0, 1 if a file could not be removed, 2 for wrong usage.\n",
    };
    int first;
    const int status = ct_session_choice_parse(argc, argv, &usage, &gc.choice, &first);
    return status == CT_GO_ON ? clear_up(&gc) : status;
}

const struct ct_subcommand ct_subcommand_gc = {
    "gc", "remove files of killed daemons and programs from shared memory", gc
};
