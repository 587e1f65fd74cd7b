/* The functions of a process: entries of its segment's directory, looked up at their first call. Entries that
 * are never called cost nothing. Most processes use a few dozen of the possible thousands. */
#ifndef CT_SHM_FUNCTIONS_H
#define CT_SHM_FUNCTIONS_H

#include "shm_process.h"

/* Reads the length of the directory. */
void ct_shm_read_directory(struct ct_shm_process *process);
/* Returns the function of an entry below `published`. If out of memory, reports that to the store and returns
 * NULL. */
struct ct_callee *ct_shm_function(struct ct_shm_process *process, struct ct_ledger *ledger, uint32_t entry);
/* Returns the same function together with its saved counters. */
struct ct_shm_function *ct_shm_find_function(struct ct_shm_process *process, struct ct_ledger *ledger,
                                             uint32_t entry);
/* Resets the functions' numbers and saved counters, which the store has rolled back. */
void ct_shm_revert_functions(struct ct_shm_process *process);
/* Frees all functions. */
void ct_shm_forget_functions(struct ct_shm_process *process);

#endif
