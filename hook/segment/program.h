/* The process as /proc tells of it: the program, when it started, in which pid namespace. */
#ifndef CT_PROGRAM_H
#define CT_PROGRAM_H

#include "segment.h"

/* Fills that in for the process `pid`, which is this one. */
void ct_program_describe(struct ct_segment *segment, int32_t pid);

#endif
