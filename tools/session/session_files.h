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

enum ct_serving { CT_SERVED_NOT, CT_SERVED_LEFT /* left by a killed daemon */, CT_SERVED };
/* Returns whether a daemon holds the lock of the control segment at `path`, whose head goes to `control`. The
 * file must belong to `uid`, and no other user may have the right to write it. Otherwise the session counts
 * as not served, and hooks ignore it, too. A lock for which the kernel reports a process belongs to a tool
 * that holds it for a moment. A daemon's lock belongs to an open file, so the kernel reports no process for
 * it. */
enum ct_serving ct_control_read(const char *path, uint32_t uid, struct ct_control *control);

/* Gets the next file in the folder whose name is that for a session's file. After the last file, closes the
 * folder and returns false. `folder` is NULL if it could not be opened. */
bool ct_session_files_next(DIR *folder, struct ct_session_file *file);

#endif
