#include "session_files.h"

#include "real_user.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum ct_serving ct_control_read(const char *path, uint32_t uid, struct ct_control *control)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return CT_SERVED_NOT;
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    struct stat status;
    const bool there =
        ct_real_fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        ct_session_uid_of(status.st_uid) == uid && (status.st_mode & 022) == 0 &&
        pread(fd, control, sizeof(*control), 0) >= (ssize_t)offsetof(struct ct_control, anchors);
    const bool held = there && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK && lock.l_pid <= 0;
    close(fd);
    if (held)
        return CT_SERVED;
    return there ? CT_SERVED_LEFT : CT_SERVED_NOT;
}

bool ct_session_files_next(DIR *folder, struct ct_session_file *file)
{
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        if (ct_session_file_parse(entry->d_name, file))
            return true;
    }
    if (folder)
        closedir(folder);
    return false;
}

bool ct_session_file_lane(int fd, const struct ct_segment *segment, uint32_t number, struct ct_lane *lane)
{
    return number < segment->lanes && number < segment->lane_slots &&
           pread(fd, lane, sizeof(*lane), (off_t)ct_segment_lane_offset(segment, number)) ==
               (ssize_t)sizeof(*lane);
}
