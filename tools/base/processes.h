/* Keeps the processes of the machine as of the last look, so that callers read only those that have changed
 * since. Called by attach, top and run. */
#ifndef CT_PROCESSES_H
#define CT_PROCESSES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum ct_process_change {
    CT_PROCESS_SAME,
    CT_PROCESS_GROWN, /* its memory has grown or shrunk: it may have loaded a library */
    CT_PROCESS_NEW,   /* it is new, or has executed another program */
};

struct ct_process {
    pid_t pid;
    uint64_t start_ticks, stack, memory_bytes;
    enum ct_process_change change;
    unsigned note; /* the caller's; 0 for a CT_PROCESS_NEW */
};

struct ct_processes {
    struct ct_process *process; /* by pid */
    size_t count;
};

/* Reads all processes that have memory of their own. Kernel threads have none. */
void ct_processes_look(struct ct_processes *processes);
void ct_processes_free(struct ct_processes *processes);

#endif
