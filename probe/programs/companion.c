#include "companion.h"

#include "proc_file.h"
#include "program.h"
#include "segment.h"
#include "session_names.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Returns whether the file called `name` in the folder is the given segment, and belongs to the session. */
static bool is_segment(const struct ct_mapped_segment *segment, DIR *files, const char *name,
                       const char *session, uid_t *uid)
{
    struct ct_session_file file;
    struct stat status;
    if (!ct_session_file_parse(name, &file) || file.kind != CT_FILE_SEGMENT || file.pid != segment->pid ||
        strcmp(file.session, session) != 0 ||
        fstatat(dirfd(files), name, &status, AT_SYMLINK_NOFOLLOW) != 0 || status.st_dev != segment->device ||
        status.st_ino != segment->inode)
        return false;
    *uid = status.st_uid;
    return true;
}

/* Finds the owner of the segment's file. The file is searched for in the folder, because the name shown for
 * the mapping may be wrong. A container's segment is not in the folder. */
static bool find_owner(const struct ct_mapped_segment *segment, const char *dir, const char *session,
                       uid_t *uid)
{
    DIR *files = opendir(dir);
    bool is_found = false;
    for (const struct dirent *entry; files && !is_found && (entry = readdir(files)) != NULL;)
        is_found = is_segment(segment, files, entry->d_name, session, uid);
    if (files)
        closedir(files);
    return is_found;
}

/* Returns whether the segment names the same pid, pid namespace and start time as the probe sees for the
 * process. */
static bool is_same_process(const struct ct_mapped_segment *segment, pid_t pid)
{
    struct ct_program own;
    struct ct_proc_stat stat;
    ct_program_describe(&own, pid, false);
    return segment->pid == pid && segment->pid_namespace == own.pid_namespace &&
           ct_proc_stat(pid, &stat) == 0 && stat.start_ticks == segment->process_start;
}

bool ct_companion_find(struct ct_companion *companion, const struct ct_mapped_drivers *images, pid_t pid,
                       const char *dir, const char *session)
{
    const struct ct_mapped_segment *segment = &images->hooks;
    uid_t uid;
    if (images->hook != CT_HOOK_STAYS || segment->producer == 0 || !is_same_process(segment, pid) ||
        !find_owner(segment, dir, session, &uid))
        return false;
    *companion = (struct ct_companion){
        .pid = pid, .uid = uid, .exec_ns = segment->exec_ns, .producer = segment->producer
    };
    return true;
}
