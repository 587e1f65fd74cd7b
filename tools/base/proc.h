/* Reads facts about processes from /proc, except the state and user that proc_file.h reads. The process
 * itself controls some of these facts, above all its name and command line. Called by attach, doctor, gc,
 * probe, run, top and the session client. */
#ifndef CT_PROC_H
#define CT_PROC_H

#include "proc_file.h"

/* Returns whether a signal has stopped the process. If a debugger has stopped it, returns false. */
bool ct_proc_is_stopped(pid_t pid);

/* Returns a thread through which a process's memory can be read, preferably the pid itself. If the first
 * thread has exited while others still run, the files maps, environ, exe and root of the first thread are
 * empty. */
pid_t ct_proc_thread(pid_t pid);

/* Returns the NUL-terminated contents of a file in /proc/PID, which the caller frees. Returns NULL with errno
 * set on failure. `bytes` may be NULL. */
char *ct_proc_file(pid_t pid, const char *name, size_t *bytes);

/* Returns whether the process maps a file whose path contains `part`. Returns false if its mappings cannot be
 * read. */
bool ct_proc_has_mapped(pid_t pid, const char *part);

/* Takes the lock that keeps other attach and detach commands from changing the process's code. Only one
 * command can hold the lock, and only root and users who may attach to the process can take it. Returns a
 * descriptor, which the caller closes, or -errno: -EWOULDBLOCK while another command holds the lock. */
int ct_proc_lock(pid_t pid);
enum { CT_HOLDER_BYTES = 64 };
/* Describes the command that holds that lock, with its process ID if it is known. */
void ct_proc_describe_holder(pid_t pid, char text[CT_HOLDER_BYTES]);
/* Returns the process that holds an exclusive flock(2) lock on the inode, or 0 if the inode is not locked.
 * Trying to take a daemon's lock instead, even briefly, could make a starting daemon give up. */
pid_t ct_proc_flock_holder(ino_t inode);

/* Returns the inode number of our own PID namespace, or 0 if unknown. */
uint64_t ct_proc_namespace(void);
/* Returns whether our own PID namespace is the machine's, whose process IDs the kernel and BPF programs use.
 */
bool ct_proc_is_in_first_namespace(void);
/* Returns whether this process can see the processes in all PID namespaces. A process in the initial
 * namespace can see them all, unless /proc hides other users' processes. */
bool ct_proc_shows_all(void);
/* Returns whether a live process has this start time, and this pid in its own namespace. Returns true if
 * /proc cannot be read. */
bool ct_proc_exists(int32_t inner_pid, uint64_t start_ticks);

#endif
