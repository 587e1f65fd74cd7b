/* File names in the session's directory, which is /dev/shm unless CUDATRACE_SHM_DIR names another directory.
 * A session belongs to a user, so two users may have sessions with the same name. One of root's sessions may
 * be the system session (`cudatraced --system`), which serves processes that find no session of their own
 * user.
 *
 *   cudatrace.UID.SESSION              control segment
 *   cudatrace.UID.SESSION.PID.IMAGE    a process's segment (IMAGE: hexadecimal nanoseconds of its creation)
 *   cudatrace.UID.SESSION.sock         the daemon's command socket
 *   cudatrace.UID.SESSION.system.PID.IMAGE
 *                                      a process's segment for the system session; UID is the process's
 *   cudatrace.UID.SESSION.probe        the lock of the session's `cudatrace probe`
 *   cudatrace.0.SESSION.bell           the doorbell of the system session, which users can only ring
 *
 * A session name consists of 1 to CT_SESSION_MAX letters, digits, '-' or '_'. It contains no dots, because
 * dots separate the fields. */
#ifndef CT_PROTO_SESSION_NAMES_H
#define CT_PROTO_SESSION_NAMES_H

#include "real_user.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define CT_SHM_DIR         "/dev/shm"
#define CT_SHM_DIR_ENV     "CUDATRACE_SHM_DIR"
#define CT_SESSION_DEFAULT "default"
#define CT_SESSION_ENV     "CUDATRACE_SESSION"
enum { CT_SESSION_MAX = 48, CT_NAME_BYTES = 256 };
/* The maximum size of the directory path. A path of this size with the longest file name still fits in
 * CT_NAME_BYTES. */
enum { CT_SHM_DIR_BYTES = CT_NAME_BYTES - 64 - CT_SESSION_MAX };

static inline bool ct_session_valid(const char *name)
{
    size_t n = 0;
    for (; name[n]; n++) {
        const char c = name[n];
        const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          c == '-' || c == '_';
        if (!fine || n >= CT_SESSION_MAX)
            return false;
    }
    return n > 0;
}

/* Returns the user ID for a session's file names: the ID that user `uid` has in the parent of this user
 * namespace. A container's root therefore has the same ID as the user that started the container. Namespaces
 * further out are not visible from here. `map` contains the text of /proc/self/uid_map. Returns `uid` itself
 * if it is not in the map. */
static inline uint32_t ct_session_uid_in(const char *map, uint32_t uid)
{
    /* Each line contains three numbers: the first user ID inside the namespace, the ID of the same user
     * outside, and the number of IDs. */
    for (char *at = (char *)(uintptr_t)map; *at; at++) {
        const uint64_t inside = strtoull(at, &at, 10);
        const uint64_t outside = strtoull(at, &at, 10);
        const uint64_t count = strtoull(at, &at, 10);
        if (*at != '\n')
            break;
        if (uid >= inside && uid - inside < count)
            return (uint32_t)(outside + (uid - inside));
    }
    return uid;
}

/* Returns whether files that seem to belong to user `uid` can belong to another user. The kernel shows the
 * overflow user (by default 65534, proc_sys_kernel(5)) as the owner if a file's user is not in the map of the
 * process's user namespace, and also as the process's own user if that is not in the map. */
static inline bool ct_session_uid_is_shared(const char *map, uint32_t uid)
{
    enum { OVERFLOW_UID = 65534 };
    char *at = (char *)(uintptr_t)map;
    const uint64_t inside = strtoull(at, &at, 10), outside = strtoull(at, &at, 10);
    return uid == OVERFLOW_UID && (inside != 0 || outside != 0 || strtoull(at, &at, 10) < UINT32_MAX);
}

/* Reads the process's uid_map, or the empty string if it cannot be read. Not for the hook, which has
 * ct_descriptor_read(). */
enum { CT_UID_MAP_BYTES = 1024 };
static inline void ct_session_read_map(char map[CT_UID_MAP_BYTES])
{
    const int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? 0 : read(fd, map, CT_UID_MAP_BYTES - 1);
    if (fd >= 0)
        close(fd);
    map[n > 0 ? n : 0] = '\0';
}

static inline uint32_t ct_session_uid_of(uint32_t uid)
{
    char map[CT_UID_MAP_BYTES];
    ct_session_read_map(map);
    return ct_session_uid_in(map, uid);
}

static inline uint32_t ct_session_uid(void)
{
    return ct_session_uid_of(ct_real_euid());
}

/* Write a path in directory `dir` (shorter than CT_SHM_DIR_BYTES) to `path`. The path fits if the session's
 * name is valid. */
static inline void ct_session_control_path(char path[CT_NAME_BYTES], const char *dir, uint32_t uid,
                                           const char *session)
{
    snprintf(path, CT_NAME_BYTES, "%s/cudatrace.%" PRIu32 ".%s", dir, uid, session);
}

static inline void ct_session_socket_path(char path[CT_NAME_BYTES], const char *dir, uint32_t uid,
                                          const char *session)
{
    snprintf(path, CT_NAME_BYTES, "%s/cudatrace.%" PRIu32 ".%s.sock", dir, uid, session);
}

static inline void ct_session_bell_path(char path[CT_NAME_BYTES], const char *dir, uint32_t uid,
                                        const char *session)
{
    snprintf(path, CT_NAME_BYTES, "%s/cudatrace.%" PRIu32 ".%s.bell", dir, uid, session);
}

static inline void ct_session_probe_path(char path[CT_NAME_BYTES], const char *dir, uint32_t uid,
                                         const char *session)
{
    snprintf(path, CT_NAME_BYTES, "%s/cudatrace.%" PRIu32 ".%s.probe", dir, uid, session);
}

static inline void ct_session_segment_path(char path[CT_NAME_BYTES], const char *dir, uint32_t uid,
                                           const char *session, bool system, int32_t pid, uint64_t created_ns)
{
    snprintf(path, CT_NAME_BYTES, "%s/cudatrace.%" PRIu32 ".%s%s.%" PRId32 ".%" PRIx64, dir, uid, session,
             system ? ".system" : "", pid, created_ns);
}

enum ct_session_file_kind { CT_FILE_CONTROL, CT_FILE_SOCKET, CT_FILE_BELL, CT_FILE_PROBE, CT_FILE_SEGMENT };

/* The parts of a file name in the session's directory. */
struct ct_session_file {
    char name[CT_NAME_BYTES];
    enum ct_session_file_kind kind;
    uint32_t uid;
    char session[CT_SESSION_MAX + 1];
    int32_t pid;         /* the pid in a segment's name, in the pid namespace of the segment's maker */
    uint64_t created_ns; /* when the segment was created */
    bool system;         /* a segment for the system session; root owns the session, but any user may own
                          * the segment */
};

/* Parses a number without a sign or leading zeros, as printed by printf(). Returns a pointer to the text
 * after the number, or NULL if there is no number or it exceeds `most`. */
static inline const char *ct_session_number(const char *text, uint64_t most, uint64_t *number)
{
    *number = 0;
    size_t i = 0;
    for (; text[i] >= '0' && text[i] <= '9' && *number <= most; i++)
        *number = *number * 10 + (uint64_t)(text[i] - '0');
    return i == 0 || (text[0] == '0' && i > 1) || *number > most ? NULL : text + i;
}

/* Parses PID.IMAGE, as written by ct_session_segment_path(). Returns false if the text has any other form. */
static inline bool ct_session_parse_segment(const char *text, struct ct_session_file *file)
{
    uint64_t pid;
    const char *image = ct_session_number(text, INT32_MAX, &pid);
    const size_t length = image && *image == '.' ? strspn(image + 1, "0123456789abcdef") : 0;
    if (pid == 0 || length == 0 || length > 16 || (image[1] == '0' && length > 1) || image[1 + length])
        return false;
    file->kind = CT_FILE_SEGMENT;
    file->pid = (int32_t)pid;
    file->created_ns = strtoull(image + 1, NULL, 16);
    return true;
}

/* Parses the name of a file in the session's directory. Returns false if none of the functions above could
 * have written the name. */
static inline bool ct_session_file_parse(const char *name, struct ct_session_file *file)
{
    static const char prefix[] = "cudatrace.", system[] = "system.";
    uint64_t uid;
    *file = (struct ct_session_file){ .kind = CT_FILE_CONTROL };
    if (strlen(name) >= sizeof(file->name) || strncmp(name, prefix, strlen(prefix)) != 0)
        return false;
    const char *at = ct_session_number(name + strlen(prefix), UINT32_MAX, &uid);
    const size_t length = at && *at == '.' ? strcspn(at + 1, ".") : 0;
    if (length == 0 || length > CT_SESSION_MAX)
        return false;
    strcpy(file->name, name);
    memcpy(file->session, at + 1, length);
    file->uid = (uint32_t)uid;
    if (!ct_session_valid(file->session))
        return false;
    at += 1 + length;
    if (*at == '\0')
        return true;
    at++;
    static const char *const last[] = {
        [CT_FILE_SOCKET] = "sock", [CT_FILE_BELL] = "bell", [CT_FILE_PROBE] = "probe"
    };
    for (int kind = CT_FILE_SOCKET; kind <= CT_FILE_PROBE; kind++) {
        file->kind = (enum ct_session_file_kind)kind;
        if (strcmp(at, last[kind]) == 0)
            return true;
    }
    file->system = strncmp(at, system, strlen(system)) == 0;
    return ct_session_parse_segment(at + (file->system ? strlen(system) : 0), file);
}

/* True if the path of the session's socket in the directory fits in a socket address (107 bytes at most). */
static inline bool ct_session_socket_fits(const char *dir, uint32_t uid, const char *session)
{
    char path[CT_NAME_BYTES];
    if (strlen(dir) >= CT_SHM_DIR_BYTES)
        return false;
    ct_session_socket_path(path, dir, uid, session);
    return strlen(path) < sizeof(((struct sockaddr_un *)0)->sun_path);
}

#endif
