/* The process as /proc tells of it: the program, when it started, in which pid namespace. */
#ifndef CT_PROGRAM_H
#define CT_PROGRAM_H

#include "segment.h"

/* Fills that in for the process `pid`, which is this one. */
void ct_program_describe(struct ct_segment *segment, int32_t pid);

/* Field 22 of /proc/self/stat of the process `pid`, which is this one: clock ticks. */
uint64_t ct_program_start_ticks(int32_t pid);
/* Returns about when a process of that field 22 began, in nanoseconds of CLOCK_MONOTONIC. */
uint64_t ct_program_start_ns(uint64_t ticks);

#endif
