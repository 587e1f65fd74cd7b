/* The costs of the BPF programs: how often the kernel ran them, and for how long (--verbose). */
#ifndef CT_PROBE_PROGRAM_COSTS_H
#define CT_PROBE_PROGRAM_COSTS_H

#include "functions.h"
#include "programs.h"

/* Makes the kernel measure all BPF programs on the machine until the returned descriptor is closed. The
 * measurement makes each run of a program take longer. Returns a descriptor or -errno. Requires CAP_SYS_ADMIN
 * and Linux 5.8. */
int ct_program_costs_begin(void);
/* Prints a line for each program that has run since the measurement began, and a line for the recorded
 * events. */
void ct_program_costs_print(const struct ct_programs *programs, const struct ct_function_table *functions);

#endif
