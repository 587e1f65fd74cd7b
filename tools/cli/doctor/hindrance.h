/* Finds what prevents the hook in a process from recording: the process's user, its namespaces, its limits,
 * or its folder for shared memory. */
#ifndef CT_HINDRANCE_H
#define CT_HINDRANCE_H

#include "segment.h"

#include <sys/types.h>

enum { CT_HINDRANCE_BYTES = 384 };

/* Writes the reason and the advice to `text`, as a clause about the process. `thread` is a live thread of the
 * process (ct_proc_thread()), and `uid` the user whose daemon serves the session. Returns false if nothing
 * prevents the hook from recording. */
bool ct_hindrance_find(pid_t pid, pid_t thread, uint32_t uid, const char *shm_dir,
                       char text[CT_HINDRANCE_BYTES]);
/* The space that a segment with one thread needs. The directory's other pages are allocated later. */
#define CT_HINDRANCE_ROOM_MIN (CT_SEGMENT_BYTES_MIN + 4096 + CT_LANE_HEADER_BYTES + CT_CHUNK_BYTES)
/* Returns the number of bytes that segments may allocate in a folder, or UINT64_MAX if there is no limit. The
 * hook leaves part of the space free for other programs. */
uint64_t ct_hindrance_room(uint64_t block_bytes, uint64_t blocks, uint64_t available);

#endif
