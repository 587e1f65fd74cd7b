/* Names in /dev/shm. A session belongs to a user: two users' sessions of one name never meet. One of root's
 * may be the system's (`cudatraced --system`): processes of all users belong to it that find no session of
 * their own.
 *
 *   cudatrace.UID.SESSION              control segment
 *   cudatrace.UID.SESSION.PID.IMAGE    a process's segment (IMAGE: hexadecimal nanoseconds of its creation)
 *   cudatrace.UID.SESSION.sock         the daemon's command socket
 *   cudatrace.UID.SESSION.system.PID.IMAGE
 *                                      a process's segment for the system's session, UID being the process's
 *   cudatrace.0.SESSION.bell           the doorbell of the system's session, which users can ring and no more
 *
 * A session's name is 1 to CT_SESSION_MAX letters, digits, '-' or '_': no dot, so the fields stay apart. */
#ifndef CT_PROTO_SESSION_NAMES_H
#define CT_PROTO_SESSION_NAMES_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CT_SHM_DIR         "/dev/shm"
#define CT_SESSION_DEFAULT "default"
#define CT_SESSION_ENV     "CUDATRACE_SESSION"
enum { CT_SESSION_MAX = 48, CT_NAME_BYTES = 128 };

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

/* Each writes a path under CT_SHM_DIR into `path`; a valid session name always fits. */
static inline void ct_session_control_path(char path[CT_NAME_BYTES], uint32_t uid, const char *session)
{
    snprintf(path, CT_NAME_BYTES, CT_SHM_DIR "/cudatrace.%" PRIu32 ".%s", uid, session);
}

static inline void ct_session_socket_path(char path[CT_NAME_BYTES], uint32_t uid, const char *session)
{
    snprintf(path, CT_NAME_BYTES, CT_SHM_DIR "/cudatrace.%" PRIu32 ".%s.sock", uid, session);
}

static inline void ct_session_bell_path(char path[CT_NAME_BYTES], uint32_t uid, const char *session)
{
    snprintf(path, CT_NAME_BYTES, CT_SHM_DIR "/cudatrace.%" PRIu32 ".%s.bell", uid, session);
}

static inline void ct_session_segment_path(char path[CT_NAME_BYTES], uint32_t uid, const char *session,
                                           bool system, int32_t pid, uint64_t created_ns)
{
    snprintf(path, CT_NAME_BYTES, CT_SHM_DIR "/cudatrace.%" PRIu32 ".%s%s.%" PRId32 ".%" PRIx64, uid, session,
             system ? ".system" : "", pid, created_ns);
}

/* The pid in the name of a segment: what stands behind "cudatrace.UID.SESSION.", which must be PID.IMAGE as
 * ct_session_segment_path() writes them. 0 for any other name. */
static inline int32_t ct_session_segment_pid(const char *name)
{
    int64_t pid = 0;
    size_t i = 0, image = 0;
    for (; i < 10 && name[i] >= '0' && name[i] <= '9'; i++)
        pid = pid * 10 + (name[i] - '0');
    if (i == 0 || name[0] == '0' || pid > INT32_MAX || name[i++] != '.')
        return 0;
    for (; image < 16 && ((name[i] >= '0' && name[i] <= '9') || (name[i] >= 'a' && name[i] <= 'f')); image++)
        i++;
    return image > 0 && name[i] == '\0' ? (int32_t)pid : 0;
}

#endif
