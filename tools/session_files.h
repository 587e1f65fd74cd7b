/* What lies in /dev/shm for sessions (proto/session_names.h), as it is judged from outside: by its name, and
 * by what it holds. Nothing here changes anything, and nothing is believed before it is checked. Called by
 * doctor_session.c, doctor_segment.c and gc.c. */
#ifndef CT_SESSION_FILES_H
#define CT_SESSION_FILES_H

#include "control.h"
#include "segment.h"
#include "session_names.h"

#include <sys/types.h>

enum ct_session_file_kind { CT_FILE_CONTROL, CT_FILE_SOCKET, CT_FILE_BELL, CT_FILE_SEGMENT };

struct ct_session_file {
    char name[CT_NAME_BYTES]; /* in its folder */
    enum ct_session_file_kind kind;
    uint32_t uid;
    char session[CT_SESSION_MAX + 1];
    int32_t pid; /* of a segment: the maker's, in its own namespace */
    bool system; /* a segment for the system's session, which is root's, whosever it is */
};

/* False when the name is none of ours, to the last letter. */
bool ct_session_file_parse(const char *name, struct ct_session_file *file);

enum ct_serving { CT_SERVED_NOT, CT_SERVED_LEFT /* a killed daemon's */, CT_SERVED };
/* Whether a daemon holds the lock of that control segment, whose beginning goes to `control`. A lock that
 * shows its process is a tool's, for a moment: daemons' belong to open files. */
enum ct_serving ct_control_read(const char *path, struct ct_control *control);

/* Whether its geometry is one that hooks of this build make, and a daemon reads. */
bool ct_segment_is_sane(const struct ct_segment *segment);

#endif
