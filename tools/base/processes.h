/* Keeps a list of the processes on the machine, so that callers need to examine only processes that have
 * changed since the last scan. Called by attach, top and run. */
#ifndef CT_PROCESSES_H
#define CT_PROCESSES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum ct_process_change {
    CT_PROCESS_SAME,
    CT_PROCESS_GROWN, /* its memory has grown or shrunk, so it may have loaded a library */
    CT_PROCESS_NEW,   /* it is new or has executed another program */
};

struct ct_process {
    pid_t pid;
    uint64_t start_ticks, stack, memory_bytes;
    enum ct_process_change change;
    unsigned note; /* set by the caller; reset to 0 when `change` is CT_PROCESS_NEW */
};

struct ct_processes {
    struct ct_process *process; /* sorted by pid */
    size_t count;
};

/* Rescans all processes except kernel threads, which have no memory of their own. */
void ct_processes_look(struct ct_processes *processes);
void ct_processes_free(struct ct_processes *processes);

#endif
