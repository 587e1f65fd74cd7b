/* What /proc tells of processes besides their state and user (proc_file.h). It is in part the process's own
 * to choose, its name and its command line above all. */
#ifndef CT_PROC_H
#define CT_PROC_H

#include "proc_file.h"

/* Whether a signal or a debugger has stopped it. */
bool ct_proc_is_stopped(pid_t pid);

/* A thread by which the memory of a process can be read: the files maps, environ, exe and root of a first
 * thread that has ended are empty while the others go on. The pid itself where that will do. */
pid_t ct_proc_thread(pid_t pid);

/* A file of /proc/PID with a NUL behind it, to be freed; NULL with errno. `bytes` may be NULL. */
char *ct_proc_file(pid_t pid, const char *name, size_t *bytes);

/* The inode of our own pid namespace; 0 when it is not known. */
uint64_t ct_proc_namespace(void);
/* Whether the processes of all pid namespaces are here to be seen: those of the first one see them, where
 * /proc hides nothing. */
bool ct_proc_shows_all(void);
/* Whether there is a process that has that pid in its own namespace, and began then; true when it cannot be
 * told. */
bool ct_proc_exists(int32_t inner_pid, uint64_t start_ticks);

#endif
