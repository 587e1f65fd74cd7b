#include "session.h"

#include "claimed_name.h"
#include "clock_source.h"
#include "control_lock.h"
#include "log.h"
#include "private_file.h"
#include "segment.h"
#include "taken_name.h"
#include "test_point.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool still_named(const struct ct_session *session)
{
    struct stat named, held;
    return stat(session->path, &named) == 0 && fstat(session->fd, &held) == 0 && named.st_ino == held.st_ino;
}

/* Repairs a selection that a daemon was writing when it was killed. The daemon left an odd count, which would
 * make hooks re-read the selection for each record. */
static void mend_selection(struct ct_control *control)
{
    const uint32_t selections = atomic_load_explicit(&control->selections, memory_order_relaxed);
    if (!(selections & 1))
        return;
    control->selection = ct_selection_everything();
    atomic_store_explicit(&control->selections, selections + 1, memory_order_release);
    ct_log(CT_LOG_wishes_mended, "the last daemon was killed while it changed the selection of calls: all "
                                 "calls are recorded until the next `cudatrace set`");
}

/* Returns the selection that an earlier daemon last published. If that selection is invalid, returns a
 * selection of all calls. */
static struct ct_selection take_over_selection(struct ct_control *control)
{
    const struct ct_selection everything = ct_selection_everything();
    struct ct_selection taken = everything, left;
    if (atomic_load_explicit(&control->selections, memory_order_relaxed) < 2)
        return everything;
    memcpy(&left, &control->selection, sizeof(left));
    left.calls[sizeof(left.calls) - 1] = '\0';
    taken.layers = left.layers & everything.layers;
    taken.sample = left.sample;
    return left.sample >= 1 && left.sample <= CT_SAMPLE_MAX && ct_selection_set_calls(&taken, left.calls)
               ? taken
               : everything;
}

/* Initialises the control segment. If the session's clock differs from the requested one, or the session
 * belongs to another kind of daemon, returns false and changes nothing. */
static bool initialise(struct ct_control *control, bool system, uint64_t trace, uint64_t ring_bytes,
                       int clock)
{
    const bool known = control->magic == CT_CONTROL_MAGIC && control->version == CT_PROTO_VERSION &&
                       control->bytes == sizeof(*control) && control->clock < CT_CLOCK_COUNT;
    if (known && control->system != system)
        return false;
    if (known && clock != CT_CLOCK_CHOSEN && control->clock != (uint32_t)clock)
        return false;
    /* Keep the clock of a segment left behind by a killed daemon, because hooks have the segment mapped and
     * ring its doorbell. */
    if (!known) {
        memset(control, 0, sizeof(*control));
        char source[CT_CLOCK_SOURCES_BYTES];
        control->clock = clock == CT_CLOCK_CHOSEN ? ct_clock_choose(source) : (uint32_t)clock;
    }
    CT_TEST_POINT("session.cleared");
    mend_selection(control);
    control->system = system;
    control->trace = trace;
    control->ring_bytes = ring_bytes;
    atomic_store(&control->closing, 0);
    control->daemon_pid = getpid(); /* only now, so that this daemon never seems to be stopping */
    control->version = CT_PROTO_VERSION;
    control->bytes = sizeof(*control);
    control->magic = CT_CONTROL_MAGIC;
    CT_TEST_POINT("session.opened");
    return true;
}

/* Sets errno if it returns MAP_FAILED. */
static void *map_control(int fd)
{
    errno = posix_fallocate(fd, 0, sizeof(struct ct_control));
    return errno ? MAP_FAILED
                 : mmap(NULL, sizeof(struct ct_control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static bool name_files(struct ct_session *session, const char *name, char message[CT_MESSAGE_BYTES])
{
    snprintf(session->name, sizeof(session->name), "%s", name);
    ct_session_control_path(session->path, session->dir, session->uid, name);
    ct_session_socket_path(session->socket_path, session->dir, session->uid, name);
    ct_session_bell_path(session->bell_path, session->dir, session->uid, name);
    if (ct_session_socket_fits(session->dir, session->uid, name))
        return true;
    snprintf(message, CT_MESSAGE_BYTES,
             "the path of the directory %s is too long: with the session name, a socket's address "
             "exceeds 107 bytes; choose a shorter --shm-dir",
             session->dir);
    return false;
}

static bool open_file(struct ct_session *session, char message[CT_MESSAGE_BYTES])
{
    session->fd = open(session->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (session->fd >= 0)
        return true;
    ct_message(message, "cannot create the session's control segment '%s': %s", session->path,
               strerror(errno));
    return false;
}

/* `readers` may be NULL, as in ct_private_own_fd(). */
static bool own_file(const struct ct_session *session, const struct ct_private_readers *readers,
                     char message[CT_MESSAGE_BYTES])
{
    char reason[CT_MESSAGE_BYTES / 2];
    if (ct_private_own_fd(session->fd, session->path, readers, reason, sizeof(reason)) == 0)
        return true;
    snprintf(message, CT_MESSAGE_BYTES, "%s; remove it, or choose another --session", reason);
    return false;
}

static bool is_own_file(const struct ct_session *session, char message[CT_MESSAGE_BYTES])
{
    return own_file(session, NULL, message);
}

/* Call only after locking the file. A user who can read the file could lock it first. */
static bool share_file(const struct ct_session *session, char message[CT_MESSAGE_BYTES])
{
    const struct ct_private_readers all = { .mode = 0644, .group = (gid_t)CT_NO_GROUP };
    return own_file(session, session->system ? &all : &CT_PRIVATE, message);
}

enum locking { LOCKED, LOCK_AGAIN, LOCK_FAILED };

/* Returns LOCK_AGAIN if the path no longer names the file. */
static enum locking lock_file(struct ct_session *session, struct ct_control_wait *wait,
                              char message[CT_MESSAGE_BYTES])
{
    const enum ct_control_locking locking = ct_control_lock(session->fd, wait, message);
    if (locking == CT_CONTROL_LOCKED) {
        CT_TEST_POINT("session.locked");
        return still_named(session) ? LOCKED : LOCK_AGAIN; /* a stopping daemon may have removed the file */
    }
    if (locking == CT_CONTROL_READ && session->system) {
        ct_log(CT_LOG_session_made_anew, "recreated %s, because a user with read access had locked it",
               session->path);
        unlink(session->path);
        return LOCK_AGAIN;
    }
    if (locking == CT_CONTROL_READ)
        ct_message(message, "cannot lock '%s': another program has locked it for reading", session->path);
    return LOCK_FAILED;
}

static void close_file(struct ct_session *session)
{
    if (session->fd >= 0)
        close(session->fd);
    session->fd = -1;
}

/* Removes anything at the path that is not a regular file of this user. Another user may have created it. */
static bool clear_path(const struct ct_session *session, char message[CT_MESSAGE_BYTES])
{
    const int error = ct_taken_is_foreign(session->path) ? ct_claimed_clear(session->path) : 0;
    if (error)
        ct_taken_explain(session->path, -error, message, CT_MESSAGE_BYTES);
    return !error;
}

/* Opens and locks the file at the path. */
static bool take_file(struct ct_session *session, int starter, char message[CT_MESSAGE_BYTES])
{
    enum { TRIES = 100 }; /* another user may take the name again between two steps */
    enum locking locking = LOCK_AGAIN;
    struct ct_control_wait wait = ct_control_wait_begin(session->name, starter);
    for (int i = 0; i < TRIES && locking == LOCK_AGAIN; i++) {
        locking = LOCK_FAILED;
        if (!clear_path(session, message))
            break;
        if (open_file(session, message) && is_own_file(session, message))
            locking = lock_file(session, &wait, message);
        else if (ct_taken_is_foreign(session->path))
            locking = LOCK_AGAIN;
        if (locking == LOCKED && !share_file(session, message))
            locking = LOCK_FAILED;
        if (locking != LOCKED)
            close_file(session);
    }
    if (locking == LOCK_AGAIN)
        ct_message(message, "cannot lock '%s': it is removed or replaced again and again", session->path);
    return locking == LOCKED;
}

static bool map_file(struct ct_session *session, char message[CT_MESSAGE_BYTES])
{
    void *map = map_control(session->fd);
    if (map == MAP_FAILED) {
        const int error = errno;
        const bool lacks_mappings = error == ENODEV || error == EOPNOTSUPP || error == EINVAL;
        snprintf(message, CT_MESSAGE_BYTES, "cannot allocate shared memory for the session in '%s': %s%s",
                 session->dir, strerror(error),
                 lacks_mappings ? "; its file system does not support shared memory mappings: choose a "
                                  "directory on a tmpfs with --shm-dir"
                                : "");
        unlink(session->path);
        return false;
    }
    session->control = map;
    session->guard = ct_guard_add(map, sizeof(struct ct_control));
    return true;
}

static void unmap_file(struct ct_session *session)
{
    ct_guard_remove(session->guard);
    munmap(session->control, sizeof(*session->control));
}

/* Fails if a segment left behind by a killed daemon does not match the options. */
static bool take_control(struct ct_session *session, uint64_t trace, uint64_t ring_bytes, int clock,
                         char message[CT_MESSAGE_BYTES])
{
    if (session->guard && initialise(session->control, session->system, trace, ring_bytes, clock)) {
        session->selection = take_over_selection(session->control);
        return true;
    }
    snprintf(message, CT_MESSAGE_BYTES,
             "session '%s' was served with another --clock or without the same --system, by a daemon that "
             "was killed: repeat the options of that daemon, or choose another --session",
             session->name);
    return false;
}

int ct_session_open(struct ct_session *session, const char *dir, const char *name, bool system,
                    uint64_t trace, uint64_t ring_bytes, int clock, int starter,
                    char message[CT_MESSAGE_BYTES])
{
    *session =
        (struct ct_session){ .fd = -1, .dir = dir, .uid = ct_session_uid(), .system = system, .bell = -1 };
    if (!name_files(session, name, message) || !take_file(session, starter, message))
        return -1;
    if (!map_file(session, message))
        goto fail_file;
    if (!take_control(session, trace, ring_bytes, clock, message))
        goto fail_map;
    return 0;

fail_map:
    unmap_file(session);
fail_file:
    close_file(session);
    return -1;
}

/* Runs on a separate thread, because waiting for the doorbell blocks. Wakes the loop through an async handle.
 * Any process that has the doorbell mapped can overwrite it without waking this thread, so the thread also
 * checks it twice a second. */
static void wait_for_doorbell(void *data)
{
    enum { LOOK_NS = 500000000 };
    struct ct_session *session = data;
    _Atomic uint32_t *doorbell = &session->control->doorbell;
    uint32_t heard = atomic_load(doorbell) - 1; /* the doorbell may have been rung already */
    while (!atomic_load(&session->closing)) {
        const uint32_t rung = atomic_load_explicit(doorbell, memory_order_acquire);
        if (rung == heard) {
            ct_doorbell_wait(doorbell, heard, LOOK_NS);
            continue;
        }
        heard = rung;
        uv_async_send(&session->doorbell);
        uv_sem_wait(&session->heard);
    }
}

static int start_waiting(struct ct_session *session)
{
    atomic_store(&session->closing, false);
    return uv_thread_create(&session->doorbell_thread, wait_for_doorbell, session);
}

static void stop_waiting(struct ct_session *session)
{
    atomic_store(&session->closing, true);
    ct_doorbell_ring(&session->control->doorbell);
    uv_sem_post(&session->heard);
    uv_thread_join(&session->doorbell_thread);
}

static void on_async(uv_async_t *async)
{
    struct ct_session *session = async->data;
    if (atomic_load(&session->closing))
        return;
    session->on_doorbell(session->data);
    uv_sem_post(&session->heard);
}

/* ---- the bell of the system session: a socket that accepts datagrams from all users ---- */

enum { BELL_PAUSE_MS = 10, BELL_DRAIN_MAX = 1024 };

static void on_bell_pause(uv_timer_t *timer);

/* Runs at most a hundred times a second, even if a process rings without pause, because the doorbell is not
 * read between two runs.
 */
static void on_bell(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    struct ct_session *session = poll->data;
    char ring[16];
    for (int i = 0; i < BELL_DRAIN_MAX && recv(session->bell, ring, sizeof(ring), MSG_DONTWAIT) >= 0; i++)
        ;
    uv_poll_stop(poll);
    uv_timer_start(&session->bell_pause, on_bell_pause, BELL_PAUSE_MS, 0);
    session->on_doorbell(session->data);
}

static void on_bell_pause(uv_timer_t *timer)
{
    struct ct_session *session = timer->data;
    uv_poll_start(&session->bell_poll, UV_READABLE, on_bell);
}

/* Creates a socket at the bell's path. The session's lock proves that a socket there is not in use. Returns a
 * descriptor or -errno. */
static int make_bell(struct ct_session *session)
{
    session->bell_inode = 0;
    return ct_claimed_socket(session->bell_path, SOCK_DGRAM, 0555, &session->bell_inode);
}

static int listen_to_bell(struct ct_session *session, uv_loop_t *loop)
{
    session->bell = make_bell(session);
    if (session->bell < 0)
        return uv_translate_sys_error(-session->bell);
    uv_timer_init(loop, &session->bell_pause);
    uv_poll_init(loop, &session->bell_poll, session->bell);
    session->bell_pause.data = session->bell_poll.data = session;
    return uv_poll_start(&session->bell_poll, UV_READABLE, on_bell);
}

static void close_bell(struct ct_session *session)
{
    unlink(session->bell_path);
    uv_poll_stop(&session->bell_poll);
    uv_close((uv_handle_t *)&session->bell_poll, NULL);
    uv_close((uv_handle_t *)&session->bell_pause, NULL);
    close(session->bell);
}

int ct_session_listen(struct ct_session *session, uv_loop_t *loop, void (*on_doorbell)(void *data),
                      void *data)
{
    session->on_doorbell = on_doorbell;
    session->data = data;
    if (session->system)
        return listen_to_bell(session, loop);
    session->doorbell.data = session;
    int error = uv_async_init(loop, &session->doorbell, on_async);
    if (!error)
        error = uv_sem_init(&session->heard, 0);
    if (!error)
        error = start_waiting(session);
    return error;
}

/* ---- recreated files ---- */

static bool bell_is_named(const struct ct_session *session)
{
    struct stat status;
    return !session->system ||
           (lstat(session->bell_path, &status) == 0 && status.st_ino == session->bell_inode);
}

bool ct_session_is_named(const struct ct_session *session)
{
    return still_named(session) && bell_is_named(session);
}

/* Replaces the socket under the same descriptor number, which the loop keeps polling. */
static void renew_bell(struct ct_session *session)
{
    const int bell = make_bell(session);
    if (bell < 0)
        return; /* the next check tries again */
    uv_timer_stop(&session->bell_pause);
    uv_poll_stop(&session->bell_poll);
    dup3(bell, session->bell, O_CLOEXEC);
    close(bell);
    uv_poll_start(&session->bell_poll, UV_READABLE, on_bell);
}

/* Copies everything about the session that hooks read. To hooks that still have the old segment mapped, the
 * daemon appears to have exited. */
static void fill_anew(struct ct_control *fresh, const struct ct_control *old)
{
    memcpy(fresh, old, sizeof(*fresh));
    atomic_store(&fresh->closing, 0);
    fresh->daemon_pid = getpid();
}

/* Creates the control segment in an unnamed file, and locks it. Returns -1 on failure. */
static int make_unnamed(const struct ct_session *session, const struct ct_control *old)
{
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    const int fd = open(session->dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    void *map = MAP_FAILED;
    if (fd >= 0 && fchmod(fd, session->system ? 0644 : 0600) == 0 && fcntl(fd, F_OFD_SETLK, &whole) == 0)
        map = map_control(fd);
    if (map == MAP_FAILED) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    fill_anew(map, old);
    munmap(map, sizeof(struct ct_control));
    return fd;
}

/* Returns whether a process holds a daemon's lock on this user's file at `path`. A process with only read
 * access to the file cannot take such a lock. */
static bool is_served(const char *path)
{
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat status;
    const bool is_own = fd >= 0 && ct_real_fstat(fd, &status) == 0 && status.st_uid == ct_real_euid();
    const bool served = is_own && fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type == F_WRLCK;
    if (fd >= 0)
        close(fd);
    return served;
}

enum ct_session_renewal ct_session_renew(struct ct_session *session)
{
    if (still_named(session)) {
        renew_bell(session);
        return CT_RENEWED;
    }
    if (is_served(session->path))
        return CT_TAKEN;
    const int fd = make_unnamed(session, session->control);
    if (fd < 0)
        return CT_NOT_RENEWED;
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ct_claimed_clear(session->path); /* if there is a file, it is not in use */
    if (linkat(AT_FDCWD, link, AT_FDCWD, session->path, AT_SYMLINK_FOLLOW) != 0) {
        close(fd);
        return is_served(session->path) ? CT_TAKEN : CT_NOT_RENEWED;
    }
    if (!session->system)
        stop_waiting(session);
    atomic_store(&session->control->closing, 1);
    /* Map the new segment over the old one, because other parts of the daemon keep its address. */
    mmap(session->control, sizeof(*session->control), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    close(session->fd);
    session->fd = fd;
    if (session->system)
        renew_bell(session);
    else
        start_waiting(session);
    return CT_RENEWED;
}

struct ct_selection ct_session_selection(const struct ct_session *session)
{
    return session->selection;
}

static bool change(struct ct_selection *selection, char *setting)
{
    static const struct {
        const char *key;
        bool (*set)(struct ct_selection *selection, const char *value);
    } keys[] = {
        { "layers=", ct_selection_set_layers },
        { "calls=", ct_selection_set_calls },
        { "sample=", ct_selection_set_sample },
    };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const size_t length = strlen(keys[i].key);
        if (strncmp(setting, keys[i].key, length) == 0)
            return keys[i].set(selection, setting + length);
    }
    return false;
}

bool ct_session_select(struct ct_session *session, const char *settings, char *problem, size_t bytes)
{
    struct ct_control *control = session->control;
    struct ct_selection selection = session->selection;
    char text[CT_SELECTION_CALLS_BYTES + 256];
    snprintf(text, sizeof(text), "%s", settings);
    char *rest = text;
    for (char *setting; (setting = strsep(&rest, " ")) != NULL;) {
        if (*setting && !change(&selection, setting)) {
            snprintf(problem, bytes, "invalid selection '%s'", setting);
            return false;
        }
    }
    /* `selections` is odd while the selection is being written. Pairs with the acquires in read_requested()
     * in hook/function/row_selection.c. */
    const uint32_t selections = atomic_load_explicit(&control->selections, memory_order_relaxed) & ~1U;
    atomic_store_explicit(&control->selections, selections + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    CT_TEST_POINT("session.selecting");
    control->selection = session->selection = selection;
    atomic_store_explicit(&control->selections, selections + 2, memory_order_release);
    return true;
}

void ct_session_check_clock(struct ct_session *session)
{
    char source[CT_CLOCK_SOURCES_BYTES];
    if (session->control->clock != CT_CLOCK_COUNTER)
        return;
    const bool is_doubted = ct_clock_choose(source) != CT_CLOCK_COUNTER;
    if (!*source)
        return; /* it cannot be read now */
    if (is_doubted && !session->is_clock_doubted)
        ct_log(CT_LOG_clock_doubted,
               "the kernel no longer trusts the processor's counter (the clock source is now %s): times may "
               "differ between processors; a new session uses the kernel's clock",
               source);
    session->is_clock_doubted = is_doubted;
}

void ct_session_hide(struct ct_session *session)
{
    atomic_store(&session->control->closing, 1);
    CT_TEST_POINT("session.hidden");
}

void ct_session_close(struct ct_session *session)
{
    if (session->fd < 0)
        return;
    if (session->on_doorbell && session->system) {
        close_bell(session);
    } else if (session->on_doorbell) {
        stop_waiting(session);
        uv_sem_destroy(&session->heard);
        uv_close((uv_handle_t *)&session->doorbell, NULL);
    }
    CT_TEST_POINT("session.closing");
    if (still_named(session))
        unlink(session->path);
    CT_TEST_POINT("session.removed");
    unmap_file(session);
    close_file(session);
}
