/* The functions of a process: entries of its segment's directory, looked up when they are called first. What
 * a process has in its directory and never calls costs nothing: most use a few dozen of the thousands that
 * there may be. */
#ifndef CT_SHM_FUNCTIONS_H
#define CT_SHM_FUNCTIONS_H

#include "shm_process.h"

/* Reads how long the directory is. */
void ct_shm_read_directory(struct ct_shm_process *process);
/* The function of an entry below `published`. NULL where memory is short, which the store hears of. */
struct ct_callee *ct_shm_function(struct ct_shm_process *process, struct ct_ledger *ledger, uint32_t entry);
/* The same, with what was saved of it. */
struct ct_shm_function *ct_shm_find_function(struct ct_shm_process *process, struct ct_ledger *ledger,
                                             uint32_t entry);
/* Forgets the functions' numbers and what was saved, which the store took back. */
void ct_shm_revert_functions(struct ct_shm_process *process);
/* Frees what is kept of them. */
void ct_shm_forget_functions(struct ct_shm_process *process);

#endif
