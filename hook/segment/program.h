/* Describes a process by its program, start time and pid namespace, as shown in /proc. */
#ifndef CT_PROGRAM_H
#define CT_PROGRAM_H

#include "segment.h"

#include <stdbool.h>
#include <stddef.h>

/* The description of a program, as stored in its segment. */
struct ct_program {
    uint64_t start_ticks; /* field 22 of /proc/PID/stat */
    uint64_t pid_namespace;
    char exe[sizeof(((struct ct_segment *)0)->exe)];
    char cmdline[sizeof(((struct ct_segment *)0)->cmdline)];
};

/* Describes process `pid`. Set `is_own` if this is the calling process. Members that cannot be read from
 * /proc are 0 or "". */
void ct_program_describe(struct ct_program *program, int32_t pid, bool is_own);

/* Returns the number of threads of the calling process, whose pid is `pid`, or 0 if unknown. Does not count a
 * first thread that has exited. */
uint32_t ct_program_threads(int32_t pid);
/* Returns the exit status (0 to 255) of the first thread of the calling process, or 0 if that thread has not
 * exited. */
int ct_program_first_status(int32_t pid);
/* Returns field 22 of /proc/PID/stat in clock ticks. `pid` is the calling process's pid. */
uint64_t ct_program_start_ticks(int32_t pid);
/* Converts field 22 to the approximate start time in CLOCK_MONOTONIC nanoseconds. */
uint64_t ct_program_start_ns(uint64_t ticks);

#endif
