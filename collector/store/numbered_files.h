/* The numbers of a trace's files (trace_files.h) in a folder to which other users may add files. */
#ifndef CT_NUMBERED_FILES_H
#define CT_NUMBERED_FILES_H

#include <stdint.h>

/* Returns the highest number below `number` of a file that belongs to this user, or 0 if there is none.
 * `trace` is the path of the trace's first file. */
uint32_t ct_numbered_before(const char *trace, uint32_t number);
/* Returns the number of the file that follows file `number`. No other user has a file or link under the name
 * of that file or of one of its side files. If other users have taken many numbers, tries numbers at random
 * distances, which double. */
uint32_t ct_numbered_after(const char *trace, uint32_t number);
/* Returns the disk space that the file at `path` and its log use, in bytes. */
uint64_t ct_numbered_bytes(const char *path);

#endif
