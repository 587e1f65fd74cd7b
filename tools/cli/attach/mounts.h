/* Answers questions about the folders that another process sees, without following its paths. The process may
 * control where its paths lead, for example to a file system of its own that never answers. Therefore only
 * the kernel's list of mounts is read. */
#ifndef CT_ATTACH_MOUNTS_H
#define CT_ATTACH_MOUNTS_H

#include <stdbool.h>
#include <sys/types.h>

/* Returns whether the path leads to the same folder for a thread of the process and for us. */
bool ct_mounts_share(pid_t pid, pid_t thread, const char *path);
/* Returns whether the thread sees a /proc. */
bool ct_mounts_have_proc(pid_t pid, pid_t thread);

#endif
