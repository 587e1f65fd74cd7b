/* The process as described by /proc: the program, its start time, its pid namespace. */
#ifndef CT_PROGRAM_H
#define CT_PROGRAM_H

#include "segment.h"

#include <stdbool.h>
#include <stddef.h>

/* A program's description in its segment. */
struct ct_program {
    uint64_t start_ticks; /* field 22 of /proc/PID/stat */
    uint64_t pid_namespace;
    char exe[sizeof(((struct ct_segment *)0)->exe)];
    char cmdline[sizeof(((struct ct_segment *)0)->cmdline)];
};

/* Describes the process `pid`. `is_own` is true for the calling process. Members that /proc lacks are 0 or
 * "". */
void ct_program_describe(struct ct_program *program, int32_t pid, bool is_own);

/* Returns field 22 of /proc/self/stat, in clock ticks. `pid` is this process. */
uint64_t ct_program_start_ticks(int32_t pid);
/* Returns the approximate start time, in nanoseconds of CLOCK_MONOTONIC, of a process with that field 22. */
uint64_t ct_program_start_ns(uint64_t ticks);

#endif
