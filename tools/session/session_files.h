/* Reads the files of sessions in /dev/shm (proto/session_names.h) from outside: their names, and the head of
 * the control segment. Changes nothing, and validates everything before using it. Called by sessions.c, gc
 * and doctor. */
#ifndef CT_SESSION_FILES_H
#define CT_SESSION_FILES_H

#include "control.h"
#include "segment.h"
#include "session_names.h"

#include <dirent.h>
#include <sys/types.h>

enum ct_serving { CT_SERVED_NOT, CT_SERVED_LEFT /* by a killed daemon */, CT_SERVED };
/* Returns whether a daemon holds the lock of the control segment at `path`, whose head goes to `control`. The
 * file must belong to `uid`, and no other user may have the right to write it. Otherwise the session counts
 * as not served, and hooks ignore it, too. A lock that shows its process belongs to a tool that holds it for
 * a moment. The locks of daemons belong to open files and show no process. */
enum ct_serving ct_control_read(const char *path, uint32_t uid, struct ct_control *control);

/* Gets the next file of the folder with a name of a session. After the last one, it closes the folder and
 * returns false. `folder` may be NULL, for one that could not be opened. */
bool ct_session_files_next(DIR *folder, struct ct_session_file *file);

#endif
