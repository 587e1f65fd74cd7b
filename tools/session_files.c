#include "session_files.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A number as printf() writes it, without a sign or leading zeros; behind it, or NULL. */
static const char *parse_number(const char *text, uint64_t most, uint64_t *number)
{
    char *end;
    if (!isdigit((unsigned char)text[0]) || (text[0] == '0' && isdigit((unsigned char)text[1])))
        return NULL;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno || *number > most ? NULL : end;
}

bool ct_session_file_parse(const char *name, struct ct_session_file *file)
{
    static const char prefix[] = "cudatrace.";
    uint64_t uid, pid;
    if (strlen(name) >= sizeof(file->name) || strncmp(name, prefix, strlen(prefix)) != 0)
        return false;
    const char *at = parse_number(name + strlen(prefix), UINT32_MAX, &uid);
    const size_t length = at && *at == '.' ? strcspn(at + 1, ".") : 0;
    if (length == 0 || length > CT_SESSION_MAX)
        return false;
    *file = (struct ct_session_file){ .uid = (uint32_t)uid };
    memcpy(file->name, name, strlen(name) + 1);
    memcpy(file->session, at + 1, length);
    if (!ct_session_valid(file->session))
        return false;
    at += 1 + length;
    static const char *const ends[] = {
        [CT_FILE_CONTROL] = "",
        [CT_FILE_SOCKET] = ".sock",
        [CT_FILE_BELL] = ".bell",
    };
    for (size_t kind = 0; kind < sizeof(ends) / sizeof(ends[0]); kind++) {
        file->kind = (enum ct_session_file_kind)kind;
        if (strcmp(at, ends[kind]) == 0)
            return true;
    }
    static const char system[] = ".system";
    file->system = strncmp(at, system, strlen(system)) == 0;
    at += file->system ? strlen(system) : 0;
    if (*at != '.')
        return false;
    at = parse_number(at + 1, INT32_MAX, &pid);
    if (!at || *at != '.' || !at[1] || at[1 + strspn(at + 1, "0123456789abcdef")])
        return false;
    file->kind = CT_FILE_SEGMENT;
    file->pid = (int32_t)pid;
    return true;
}

enum ct_serving ct_control_read(const char *path, struct ct_control *control)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return CT_SERVED_NOT;
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    struct stat status;
    const bool there =
        fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        pread(fd, control, sizeof(*control), 0) >= (ssize_t)offsetof(struct ct_control, anchors);
    const bool held = there && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK && lock.l_pid <= 0;
    close(fd);
    if (held)
        return CT_SERVED;
    return there ? CT_SERVED_LEFT : CT_SERVED_NOT;
}

bool ct_segment_is_sane(const struct ct_segment *segment)
{
    const uint64_t ring = segment->ring_bytes;
    return segment->header_bytes == sizeof(*segment) && segment->function_slots <= CT_FUNCTIONS_MAX &&
           segment->lane_slots <= CT_LANES_MAX && segment->lane_offset == CT_LANE_OFFSET &&
           ring >= CT_RING_BYTES_MIN && ring <= CT_RING_BYTES_MAX && (ring & (ring - 1)) == 0 &&
           segment->lane_stride == CT_LANE_HEADER_BYTES + ring && segment->clock < CT_CLOCK_COUNT;
}
