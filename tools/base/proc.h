/* Reads what /proc says of processes, besides the state and user that proc_file.h reads. A process can choose
 * part of that itself, above all its name and its command line. Called by attach, doctor, gc, probe, run, top
 * and the session client. */
#ifndef CT_PROC_H
#define CT_PROC_H

#include "proc_file.h"

/* Returns whether a signal has stopped the process. A debugger's stop does not count. */
bool ct_proc_is_stopped(pid_t pid);

/* A thread by which the memory of a process can be read: the files maps, environ, exe and root of a first
 * thread that has ended are empty while the others go on. The pid itself where that will do. */
pid_t ct_proc_thread(pid_t pid);

/* A file of /proc/PID with a NUL behind it, to be freed; NULL with errno. `bytes` may be NULL. */
char *ct_proc_file(pid_t pid, const char *name, size_t *bytes);

/* Returns whether it has mapped a file whose path contains that; false where that cannot be read. */
bool ct_proc_has_mapped(pid_t pid, const char *part);

/* Locks the process against other commands that change its code: attach and detach do, one at a time. Returns
 * a descriptor to be closed, -EWOULDBLOCK while another command has the lock, or another -errno. */
int ct_proc_lock(pid_t pid);

/* The inode of our own pid namespace; 0 when it is not known. */
uint64_t ct_proc_namespace(void);
/* Returns whether we see the processes of all pid namespaces. A process of the first namespace does, unless
 * /proc hides processes of other users. */
bool ct_proc_shows_all(void);
/* Returns whether a process lives that has this pid in its own namespace and that began at this time; true
 * when /proc cannot be read. */
bool ct_proc_exists(int32_t inner_pid, uint64_t start_ticks);

#endif
