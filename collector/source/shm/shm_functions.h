/* The functions that a process calls. Each has an entry in the segment's directory, and is looked up when it
 * is first called. Functions that are never called cost nothing: most processes call only a few dozen of the
 * thousands of functions in the directory. */
#ifndef CT_SHM_FUNCTIONS_H
#define CT_SHM_FUNCTIONS_H

#include "shm_process.h"

/* Reads the current length of the directory. */
void ct_shm_read_directory(struct ct_shm_process *process);
/* Returns the function of an entry, whose index must be below `published`. If out of memory, reports that to
 * the store and returns NULL. */
struct ct_callee *ct_shm_function(struct ct_shm_process *process, struct ct_ledger *ledger, uint32_t entry);
/* Returns the same function as ct_shm_function(), together with its saved counters. */
struct ct_shm_function *ct_shm_find_function(struct ct_shm_process *process, struct ct_ledger *ledger,
                                             uint32_t entry);
/* Resets the IDs and saved counters of all functions, because the store has rolled them back. */
void ct_shm_revert_functions(struct ct_shm_process *process);
/* Frees all functions. */
void ct_shm_forget_functions(struct ct_shm_process *process);

#endif
