#include "session_watch.h"

#include "session_names.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

int ct_session_watch_begin(struct ct_session_watch *watch, const char *dir, const char *session)
{
    *watch = (struct ct_session_watch){ inotify_init1(IN_CLOEXEC | IN_NONBLOCK), dir, session };
    if (watch->fd >= 0 && inotify_add_watch(watch->fd, dir, IN_CREATE | IN_MOVED_TO) >= 0)
        return 0;
    const int error = -errno;
    ct_session_watch_end(watch);
    return error;
}

bool ct_session_watch_take(const struct ct_session_watch *watch)
{
    char events[4096];
    bool is_any = false;
    while (watch->fd >= 0 && read(watch->fd, events, sizeof(events)) > 0)
        is_any = true;
    return is_any;
}

void ct_session_watch_each(const struct ct_session_watch *watch, void (*found)(void *data, pid_t pid),
                           void *data)
{
    DIR *files = opendir(watch->dir);
    for (const struct dirent *entry; files && (entry = readdir(files)) != NULL;) {
        struct ct_session_file file;
        if (ct_session_file_parse(entry->d_name, &file) && file.kind == CT_FILE_SEGMENT &&
            strcmp(file.session, watch->session) == 0)
            found(data, file.pid);
    }
    if (files)
        closedir(files);
}

void ct_session_watch_end(struct ct_session_watch *watch)
{
    if (watch->fd >= 0)
        close(watch->fd);
    watch->fd = -1;
}
