/* Opens files whose paths another user may control, for example the mappings of that user's process. Used for
 * libraries and segments, by doctor, run and the probe. */
#ifndef CT_REGULAR_FILE_H
#define CT_REGULAR_FILE_H

#include <sys/stat.h>

/* Opens a regular file for reading. Anything else is not opened, because opening a device may have side
 * effects, and opening a FIFO waits. Returns a descriptor, whose file `status` describes, or -errno: -EACCES
 * if the path names something else. */
int ct_regular_file_open(const char *path, struct stat *status);

#endif
