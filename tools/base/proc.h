/* Reads facts about processes from /proc, except the state and user that proc_file.h reads. A process
 * controls some of them, above all its name and its command line. Called by attach, doctor, gc, probe, run,
 * top and the session client. */
#ifndef CT_PROC_H
#define CT_PROC_H

#include "proc_file.h"

/* Returns whether a signal has stopped the process. A debugger's stop does not count. */
bool ct_proc_is_stopped(pid_t pid);

/* Returns a thread through which the memory of a process can be read. When the first thread has ended and
 * others run, the first thread's files maps, environ, exe and root are empty. Returns the pid itself if that
 * works. */
pid_t ct_proc_thread(pid_t pid);

/* Returns a file of /proc/PID with a NUL appended, which the caller frees. Returns NULL with errno set.
 * `bytes` may be NULL. */
char *ct_proc_file(pid_t pid, const char *name, size_t *bytes);

/* Returns whether the process has mapped a file whose path contains `part`. Returns false if its mappings
 * cannot be read. */
bool ct_proc_has_mapped(pid_t pid, const char *part);

/* Locks the process against other commands that change its code. Only one attach or detach can hold the lock.
 * Returns a descriptor, which the caller closes, -EWOULDBLOCK while another command has the lock, or another
 * -errno. */
int ct_proc_lock(pid_t pid);

/* Returns the inode of our own pid namespace, or 0 if it is not known. */
uint64_t ct_proc_namespace(void);
/* Returns whether we see the processes of all pid namespaces. A process of the first namespace does, unless
 * /proc hides processes of other users. */
bool ct_proc_shows_all(void);
/* Returns whether a live process has this pid in its own namespace and this start time. Returns true if /proc
 * cannot be read. */
bool ct_proc_exists(int32_t inner_pid, uint64_t start_ticks);

#endif
