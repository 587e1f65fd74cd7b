#include "session.h"

#include "clock_source.h"
#include "segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The lock belongs to the open file description: no other close() in this process drops it. */
static int lock(int fd)
{
    struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    return fcntl(fd, F_OFD_SETLK, &whole);
}

static bool still_named(const struct ct_session *session)
{
    struct stat named, held;
    return stat(session->path, &named) == 0 && fstat(session->fd, &held) == 0 && named.st_ino == held.st_ino;
}

/* False, with nothing changed, when it was left with another clock than the one that is asked for. */
static bool initialise(struct ct_control *control, uint64_t ring_bytes, int clock)
{
    const bool known = control->magic == CT_CONTROL_MAGIC && control->version == CT_PROTO_VERSION &&
                       control->bytes == sizeof(*control);
    if (known && clock != CT_CLOCK_CHOSEN && control->clock != (uint32_t)clock)
        return false;
    /* What a killed daemon left is taken over: hooks have it mapped and post its semaphore. */
    if (!known) {
        memset(control, 0, sizeof(*control));
        sem_init(&control->doorbell, 1, 0);
        char source[CT_CLOCK_SOURCES_BYTES];
        control->clock = clock == CT_CLOCK_CHOSEN ? ct_clock_choose(source) : (uint32_t)clock;
    }
    control->ring_bytes = ring_bytes;
    control->daemon_pid = getpid();
    atomic_store(&control->closing, 0);
    control->version = CT_PROTO_VERSION;
    control->bytes = sizeof(*control);
    control->magic = CT_CONTROL_MAGIC;
    return true;
}

int ct_session_open(struct ct_session *session, const char *dir, const char *name, uint64_t ring_bytes,
                    int clock, char message[CT_STORE_MESSAGE_BYTES])
{
    *session = (struct ct_session){ .fd = -1, .dir = dir, .uid = ct_session_uid() };
    snprintf(session->name, sizeof(session->name), "%s", name);
    ct_session_control_path(session->path, dir, session->uid, name);
    if (!ct_session_socket_fits(dir, session->uid, name)) {
        snprintf(
            message, CT_STORE_MESSAGE_BYTES,
            "the path of the directory %s is too long: with the session's name it leaves no address for a "
            "socket, which has 107 bytes at most; choose a shorter --shm-dir",
            dir);
        goto fail;
    }
    for (;;) {
        session->fd = open(session->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        struct stat status;
        if (session->fd < 0 || fstat(session->fd, &status) != 0) {
            snprintf(message, CT_STORE_MESSAGE_BYTES, "cannot make the session's control segment %s: %s",
                     session->path, strerror(errno));
            goto fail;
        }
        if (status.st_uid != geteuid() || !S_ISREG(status.st_mode)) {
            snprintf(message, CT_STORE_MESSAGE_BYTES,
                     "%s is not this user's: remove it, or choose another --session", session->path);
            goto fail;
        }
        if (lock(session->fd) != 0) {
            struct ct_control held = { 0 };
            if (pread(session->fd, &held, offsetof(struct ct_control, pad0), 0) < 0)
                held.daemon_pid = 0;
            snprintf(message, CT_STORE_MESSAGE_BYTES,
                     "session '%s' is served by another cudatraced (process %d): stop it with `cudatrace "
                     "stop`, or choose "
                     "another --session",
                     name, held.daemon_pid);
            goto fail;
        }
        if (still_named(session))
            break;
        close(session->fd); /* a daemon that was just stopping took it away */
    }
    const int error = posix_fallocate(session->fd, 0, sizeof(struct ct_control));
    void *map = MAP_FAILED;
    if (error == 0)
        map = mmap(NULL, sizeof(struct ct_control), PROT_READ | PROT_WRITE, MAP_SHARED, session->fd, 0);
    if (map == MAP_FAILED) {
        snprintf(message, CT_STORE_MESSAGE_BYTES, "no shared memory for the session in %s: %s", dir,
                 strerror(error ? error : errno));
        unlink(session->path);
        goto fail;
    }
    session->control = map;
    if (initialise(session->control, ring_bytes, clock))
        return 0;
    snprintf(
        message, CT_STORE_MESSAGE_BYTES,
        "the processes of session '%s' have another clock, from a daemon that was killed: leave --clock out, "
        "or choose another --session",
        name);
    munmap(map, sizeof(struct ct_control));

fail:
    if (session->fd >= 0)
        close(session->fd);
    session->fd = -1;
    return -1;
}

/* sem_wait blocks, so it has a thread of its own; the loop hears through an async handle. */
static void wait_for_doorbell(void *data)
{
    struct ct_session *session = data;
    while (!atomic_load(&session->closing)) {
        if (sem_wait(&session->control->doorbell) == 0)
            uv_async_send(&session->doorbell);
    }
}

static void on_async(uv_async_t *async)
{
    struct ct_session *session = async->data;
    if (!atomic_load(&session->closing))
        session->on_doorbell(session->data);
}

int ct_session_listen(struct ct_session *session, uv_loop_t *loop, void (*on_doorbell)(void *data),
                      void *data)
{
    session->on_doorbell = on_doorbell;
    session->data = data;
    session->doorbell.data = session;
    int error = uv_async_init(loop, &session->doorbell, on_async);
    if (!error)
        error = uv_thread_create(&session->doorbell_thread, wait_for_doorbell, session);
    return error;
}

struct ct_selection ct_session_selection(const struct ct_session *session)
{
    const bool wished = atomic_load_explicit(&session->control->selections, memory_order_relaxed) > 1;
    return wished ? session->control->selection : ct_selection_everything();
}

static bool change(struct ct_selection *selection, char *wish)
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
        if (strncmp(wish, keys[i].key, length) == 0)
            return keys[i].set(selection, wish + length);
    }
    return false;
}

bool ct_session_select(struct ct_session *session, const char *wishes, char *problem, size_t bytes)
{
    struct ct_control *control = session->control;
    struct ct_selection selection = ct_session_selection(session);
    char text[CT_SELECTION_CALLS_BYTES + 256];
    snprintf(text, sizeof(text), "%s", wishes);
    char *rest = text;
    for (char *wish; (wish = strsep(&rest, " ")) != NULL;) {
        if (*wish && !change(&selection, wish)) {
            snprintf(problem, bytes, "'%s' is no selection", wish);
            return false;
        }
    }
    /* Odd while it is written. Pairs with the acquires of read_wishes() in hook/selection.c. */
    const uint32_t selections = atomic_load_explicit(&control->selections, memory_order_relaxed) & ~1U;
    atomic_store_explicit(&control->selections, selections + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    control->selection = selection;
    atomic_store_explicit(&control->selections, selections + 2, memory_order_release);
    return true;
}

void ct_session_hide(struct ct_session *session)
{
    atomic_store(&session->control->closing, 1);
}

void ct_session_close(struct ct_session *session)
{
    if (session->fd < 0)
        return;
    if (session->on_doorbell) {
        atomic_store(&session->closing, true);
        sem_post(&session->control->doorbell);
        uv_thread_join(&session->doorbell_thread);
        uv_close((uv_handle_t *)&session->doorbell, NULL);
    }
    if (still_named(session))
        unlink(session->path);
    munmap(session->control, sizeof(*session->control));
    close(session->fd);
    session->fd = -1;
}
