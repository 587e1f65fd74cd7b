/* Reads the names of session files in /dev/shm (proto/session_names.h), and the header of the control
 * segment. Changes nothing, and validates everything before using it. Called by sessions.c, gc and doctor. */
#ifndef CT_SESSION_FILES_H
#define CT_SESSION_FILES_H

#include "control.h"
#include "segment.h"
#include "session_names.h"

#include <dirent.h>
#include <sys/types.h>

enum ct_serving { CT_SERVED_NOT, CT_SERVED_LEFT /* left over from a killed daemon */, CT_SERVED };
/* Returns whether a daemon holds the lock of the control segment at `path`, and stores the segment's header
 * in `control`. If the file does not belong to `uid` or is writable by other users, the session counts as not
 * served, and hooks also ignore it. If the kernel reports a process for the lock, the lock belongs to a tool
 * that holds it briefly. A daemon's lock belongs to an open file description, so the kernel reports no
 * process for it. */
enum ct_serving ct_control_read(const char *path, uint32_t uid, struct ct_control *control);

/* Finds the next file in the folder that is named like a session file. After the last file, closes the folder
 * and returns false. `folder` is NULL if it could not be opened. */
bool ct_session_files_next(DIR *folder, struct ct_session_file *file);

/* Reads the header of a lane, counted from 0, from the file of a segment. Returns false after the last lane,
 * or if the file ends before that. */
bool ct_session_file_lane(int fd, const struct ct_segment *segment, uint32_t number, struct ct_lane *lane);

#endif
