/* The segment of a process, opened and closed; and what it tells of the process's end. */
#ifndef CT_SHM_SEGMENT_H
#define CT_SHM_SEGMENT_H

#include "shm_process.h"

/* Opens the segment file at `path`, which must be that of `user`, and so must be the process behind it; NULL
 * for this process's own user, who deceives nobody but himself. 0 and a process that the caller owns; -EAGAIN
 * when its header is not complete yet; -EPERM, -ELOOP, -EPROTO and the like when it is none, with *reason a
 * short text. Loop thread. */
int ct_shm_open(const char *path, struct ct_user *user, struct ct_shm_process **result, const char **reason);
/* Returns whether the file at `path` is the one that was opened. */
bool ct_shm_is_at(const struct ct_shm_process *process, const char *path);
/* Unmaps and frees; `remove` takes the file away too, if it is still there. NULL is fine. Loop thread. */
void ct_shm_close(struct ct_shm_process *process, bool remove);
/* Returns whether the process has ended, or become another program, where no descriptor tells; of a probe's
 * segment, whether the probe has ended. */
bool ct_shm_is_over(const struct ct_shm_process *process);
/* Returns whether the hook has left the process, which runs on, or the probe has written everything. Nothing
 * more is written then. */
bool ct_shm_is_left(const struct ct_shm_process *process);
/* Returns whether the process ended by itself, once it has; false for one that was killed. */
bool ct_shm_has_exited(const struct ct_shm_process *process);

#endif
