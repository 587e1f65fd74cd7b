/* What /proc tells of processes: the only place of the tools that reads it. What it says of a process is in
 * part the process's own to choose, its name and its command line above all. Called by client.c,
 * run_command.c, gc.c and doctor.c's files. */
#ifndef CT_PROC_H
#define CT_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ct_proc {
    char state;           /* of its first thread, as proc(5) has it */
    bool ended;           /* a zombie. One whose first thread alone has ended is none */
    uint64_t start_ticks; /* as a segment names it: with the pid it tells one process from all others */
};
/* False where there is no such process, or none that may be seen. */
bool ct_proc_read(pid_t pid, struct ct_proc *proc);
/* Whether a signal or a debugger has stopped it. */
bool ct_proc_is_stopped(pid_t pid);

struct ct_proc_identity {
    uint32_t uid;      /* effective */
    int32_t inner_pid; /* in its own pid namespace */
};
bool ct_proc_identify(pid_t pid, struct ct_proc_identity *identity);

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
