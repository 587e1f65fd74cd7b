/* What lies in /dev/shm for sessions (proto/session_names.h), as it is judged from outside: by its name, and
 * by what it holds. Nothing here changes anything, and nothing is believed before it is checked. */
#ifndef CT_SESSION_FILES_H
#define CT_SESSION_FILES_H

#include "control.h"
#include "segment.h"
#include "session_names.h"

#include <dirent.h>
#include <sys/types.h>

enum ct_serving { CT_SERVED_NOT, CT_SERVED_LEFT /* a killed daemon's */, CT_SERVED };
/* Whether a daemon holds the lock of that control segment, whose beginning goes to `control`. One that is not
 * the user's in its name, or that others may write, is none: hooks look past it, too. A lock that shows its
 * process is a tool's, for a moment: daemons' belong to open files. */
enum ct_serving ct_control_read(const char *path, uint32_t uid, struct ct_control *control);

/* The next file of the folder with a name of a session's; false, and the folder closed, behind the last. A
 * folder that could not be opened (NULL) has none. */
bool ct_session_files_next(DIR *folder, struct ct_session_file *file);

#endif
