/* Reads the files of sessions in /dev/shm (proto/session_names.h) from outside: their names, and the head of
 * the control segment. It changes nothing, and checks everything before it believes it. Called by sessions.c,
 * gc and doctor. */
#ifndef CT_SESSION_FILES_H
#define CT_SESSION_FILES_H

#include "control.h"
#include "segment.h"
#include "session_names.h"

#include <dirent.h>
#include <sys/types.h>

enum ct_serving { CT_SERVED_NOT, CT_SERVED_LEFT /* a killed daemon's */, CT_SERVED };
/* Returns whether a daemon holds the lock of the control segment at `path`, whose head goes to `control`. The
 * file has to belong to `uid` and nobody else may write it; else it counts as not served, and hooks ignore it
 * too. A lock that shows its process belongs to a tool that takes it for a moment: the locks of daemons
 * belong to open files and show no process. */
enum ct_serving ct_control_read(const char *path, uint32_t uid, struct ct_control *control);

/* The next file of the folder with a name of a session's; false, and the folder closed, behind the last. A
 * folder that could not be opened (NULL) has none. */
bool ct_session_files_next(DIR *folder, struct ct_session_file *file);

#endif
