#include "find_daemon.h"

#include "bound.h"
#include "descriptor.h"
#include "error_guard.h"
#include "segment.h"
#include "session_names.h"
#include "setting.h"
#include "system.h"
#include "test_point.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct ct_control *ct_control;

/* The two addresses for mapping control segments. The first is for control segments of the user's own
 * daemons, and the second is for the read-only control segments of system daemons. At each address, a new
 * control segment replaces the previous one. Neither address is ever unmapped, since a thread may still be
 * using an earlier control segment. */
static struct ct_control *places[2];

static struct {
    struct sockaddr_un address; /* the path is empty if it is too long */
    _Atomic uint32_t rung;      /* the last sleep of the daemon that this process has rung for */
} bell;                         /* the system daemon's doorbell */

/* The user ID in the name of the last control segment that was found, by this process or by one from which it
 * was forked. */
static uint32_t found_uid;

/* Rejects relative directories, since chdir() would change their meaning. */
bool ct_daemon_session(struct ct_session *session)
{
    session->name = ct_setting(CT_SESSION_ENV);
    if (!session->name || !*session->name)
        session->name = CT_SESSION_DEFAULT;
    session->dir = ct_setting(CT_SHM_DIR_ENV);
    if (!session->dir || !*session->dir)
        session->dir = CT_SHM_DIR;
    char map[CT_UID_MAP_BYTES];
    ct_descriptor_read("/proc/self/uid_map", map, sizeof(map));
    session->uid = ct_session_uid_in(map, ct_real_euid());
    session->is_shared = ct_session_uid_is_shared(map, ct_real_euid());
    return ct_session_valid(session->name) && session->dir[0] == '/' &&
           strlen(session->dir) < CT_SHM_DIR_BYTES;
}

/* Reads the fields of a control segment once, and checks them. Returns false if this version of the hook
 * cannot use the control segment. */
static bool read_requested(const struct ct_control *control, bool own, struct ct_requested *requested)
{
    const uint32_t clock = control->clock;
    requested->system = control->system != 0;
    requested->ring_bytes = control->ring_bytes;
    requested->gpu_until_ns = atomic_load_explicit(&control->gpu_until_ns, memory_order_relaxed);
    requested->clock_is_counter = clock == CT_CLOCK_COUNTER;
    return !atomic_load(&control->closing) && control->magic == CT_CONTROL_MAGIC &&
           control->version == CT_PROTO_VERSION && control->bytes == sizeof(*control) &&
           (own || requested->system) && clock < CT_CLOCK_COUNT && ct_ring_bytes_valid(requested->ring_bytes);
}

/* Returns whether the process may look up files in the folder. */
static bool is_searchable(const char *dir)
{
    char path[CT_NAME_BYTES];
    snprintf(path, sizeof(path), "%s/.", dir);
    const int fd = ct_descriptor_open(path, O_PATH, 0);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Maps a control segment if a daemon holds the lock on its file. The daemon is either the user's own (`own`)
 * or the system daemon, whose control segment belongs to root and is read-only. `named` is the user ID in the
 * file's name. In a user namespace that does not map root, root's files seem to belong to another user, as
 * does a file that another user has planted. If F_GETLK reports the holder's pid, the holder is a tool and
 * not a daemon. */
static struct ct_control *map_control(const struct ct_session *session, uint32_t named, bool own,
                                      struct ct_requested *requested)
{
    const uint32_t owner = own ? ct_real_euid() : 0;
    struct ct_obstacle *obstacle = &requested->obstacle[own ? CT_OBSTACLE_OWN : CT_OBSTACLE_ROOT];
    char path[CT_NAME_BYTES];
    ct_session_control_path(path, session->dir, named, session->name);
    const int fd = ct_descriptor_open(path, (own ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0) {
        const int error = errno;
        const bool is_user = error == EACCES && is_searchable(session->dir);
        *obstacle = (struct ct_obstacle){ .error = error, .uid = named, .is_user = is_user };
        return NULL;
    }
    struct ct_control *control = NULL;
    struct stat status;
    /* A daemon takes a write lock, which users with only read access to the file cannot take. */
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    const bool is_file = ct_real_fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    if (is_file && status.st_uid != owner)
        *obstacle = (struct ct_obstacle){ .error = EACCES, .uid = named, .is_user = true };
    if (is_file && status.st_uid == owner && (status.st_mode & 022) == 0 &&
        status.st_size >= (off_t)sizeof(*control) && fcntl(fd, F_GETLK, &lock) == 0 &&
        lock.l_type == F_WRLCK && lock.l_pid <= 0)
        control = ct_bound_map(NULL, sizeof(*control), own ? PROT_READ | PROT_WRITE : PROT_READ, fd, 0);
    else
        errno = 0;
    if (!control && errno)
        *obstacle = (struct ct_obstacle){ .error = errno, .uid = named };
    close(fd);
    if (control && !read_requested(control, own, requested)) {
        ct_bound_unmap(control, sizeof(*control));
        return NULL;
    }
    return control;
}

/* The path was short enough for the daemon, but a container or a symbolic link may have made it longer in
 * this process. */
static void find_bell(const struct ct_session *session)
{
    char path[CT_NAME_BYTES];
    ct_session_bell_path(path, session->dir, 0, session->name);
    bell.address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if (strlen(path) < sizeof(bell.address.sun_path))
        strcpy(bell.address.sun_path, path);
}

struct ct_control *ct_daemon_find(const struct ct_session *session, struct ct_requested *requested)
{
    memset(requested->obstacle, 0, sizeof(requested->obstacle));
    if (session->is_shared) {
        requested->obstacle[found_uid == 0 ? CT_OBSTACLE_ROOT : CT_OBSTACLE_OWN] =
            (struct ct_obstacle){ .error = EACCES, .uid = found_uid, .is_user = true };
        return NULL;
    }
    struct ct_control *control = map_control(session, session->uid, true, requested);
    if (!control && session->uid != 0)
        control = map_control(session, 0, false, requested);
    if (control && requested->system)
        find_bell(session);
    if (control)
        found_uid = requested->system ? 0 : session->uid;
    return control;
}

void ct_daemon_drop(struct ct_control *control)
{
    ct_bound_unmap(control, sizeof(*control));
}

bool ct_daemon_take(struct ct_control *control, const struct ct_requested *requested)
{
    struct ct_control **place = &places[requested->system];
    if (!*place)
        *place = control;
    else if (!ct_bound_move(control, sizeof(*control), *place))
        return false;
    ct_control = *place;
    return true;
}

void ct_daemon_forget(void)
{
    atomic_store(&bell.rung, 0);
}

/* Sends a single datagram each time the daemon has fallen asleep. Keeps no descriptor. If the socket's queue
 * is full, other processes have already rung. Even if sending fails, because of a filter or a path that is
 * too long, the daemon notices new calls within a second. */
static bool ring_system(const struct ct_control *control)
{
    const uint32_t sleep = atomic_load_explicit(&control->sleeping, memory_order_relaxed);
    if (!sleep || atomic_exchange_explicit(&bell.rung, sleep, memory_order_relaxed) == sleep)
        return false;
    CT_ERROR_GUARD;
    const int fd = ct_descriptor_socket(AF_UNIX, SOCK_DGRAM);
    if (fd >= 0) {
        sendto(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&bell.address,
               sizeof(bell.address));
        close(fd);
    }
    return true;
}

static bool ring(struct ct_control *control)
{
    if (control == places[1])
        return ring_system(control);
    if (!atomic_load_explicit(&control->sleeping, memory_order_relaxed) ||
        !atomic_exchange_explicit(&control->sleeping, 0, memory_order_acq_rel))
        return false;
    CT_ERROR_GUARD;
    CT_TEST_POINT("find_daemon.ringing");
    ct_doorbell_ring(&control->doorbell);
    CT_TEST_POINT("find_daemon.rung");
    return true;
}

/* True if the daemon is asleep and its doorbell has not been rung. ct_daemon_ring() checks this first: the
 * daemon is usually awake, and a thread with a full ring would otherwise ring at every call. */
static bool is_asleep(const struct ct_control *control)
{
    const uint32_t sleep = atomic_load_explicit(&control->sleeping, memory_order_relaxed);
    return sleep && (control != places[1] || atomic_load_explicit(&bell.rung, memory_order_relaxed) != sleep);
}

/* Even if system calls are not allowed, the daemon notices new calls within a second. */
bool ct_daemon_ring(void)
{
    if (!is_asleep(ct_control))
        return false;
    if (!ct_system_begin())
        return true;
    const bool rung = ring(ct_control);
    ct_system_end();
    return rung;
}
