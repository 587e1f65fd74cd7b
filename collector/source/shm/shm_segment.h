/* Opens and closes a process's segment, and detects when the process ends. */
#ifndef CT_SHM_SEGMENT_H
#define CT_SHM_SEGMENT_H

#include "shm_process.h"

/* Opens the segment file at `path`. Both the file and its process must belong to `user`. NULL means the
 * daemon's own user, whose processes can deceive only that user. Returns 0 and a process owned by the caller,
 * or -EAGAIN if the segment's header is not complete yet. On other errors, returns -EPERM, -ELOOP, -EPROTO
 * etc., with a short reason in *reason. Used only on the loop thread. */
int ct_shm_open(const char *path, struct ct_user *user, struct ct_shm_process **result, const char **reason);
/* Returns whether the file at `path` is still the one that was opened. */
bool ct_shm_is_at(const struct ct_shm_process *process, const char *path);
/* Unmaps and frees a process. If `remove`, also removes the segment's file if it still exists. `process` may
 * be NULL. Used only on the loop thread. */
void ct_shm_close(struct ct_shm_process *process, bool remove);
/* Returns whether the process has exited or executed another program, even if no pidfd reports that. For a
 * probe's segment, returns whether the probe has exited. */
bool ct_shm_is_over(const struct ct_shm_process *process);
/* Returns whether the segment will no longer be written to, because the hook has left a running process or
 * the probe has written everything. */
bool ct_shm_is_left(const struct ct_shm_process *process);
/* Returns whether an ended process exited by itself, rather than being killed. */
bool ct_shm_has_exited(const struct ct_shm_process *process);

#endif
