/* The process as /proc tells of it: the program, when it started, in which pid namespace. */
#ifndef CT_PROGRAM_H
#define CT_PROGRAM_H

#include "segment.h"

#include <stdbool.h>
#include <stddef.h>

/* The description of a program in its segment. */
struct ct_program {
    uint64_t start_ticks; /* field 22 of /proc/PID/stat */
    uint64_t pid_namespace;
    char exe[sizeof(((struct ct_segment *)0)->exe)];
    char cmdline[sizeof(((struct ct_segment *)0)->cmdline)];
};

/* Describes the process `pid`; `is_own`: it is the calling one. Members that /proc does not have are 0 or "".
 */
void ct_program_describe(struct ct_program *program, int32_t pid, bool is_own);

/* Field 22 of /proc/self/stat of the process `pid`, which is this one: clock ticks. */
uint64_t ct_program_start_ticks(int32_t pid);
/* Returns about when a process of that field 22 began, in nanoseconds of CLOCK_MONOTONIC. */
uint64_t ct_program_start_ns(uint64_t ticks);

#endif
