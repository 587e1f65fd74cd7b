/* The costs of the BPF programs: how often the kernel ran them, and for how long (--verbose). */
#ifndef CT_PROBE_PROGRAM_COSTS_H
#define CT_PROBE_PROGRAM_COSTS_H

#include "functions.h"
#include "programs.h"

/* Lets the kernel measure all BPF programs of the machine, until the descriptor is closed. Each run of a
 * program takes longer. Returns a descriptor or -errno. Needs CAP_SYS_ADMIN and Linux 5.8. */
int ct_program_costs_begin(void);
/* Prints a line for each program that ran since then, and a line for the events that were recorded. */
void ct_program_costs_print(const struct ct_programs *programs, const struct ct_function_table *functions);

#endif
