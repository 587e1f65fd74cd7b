/* Calls that the threads of a process are inside of. */
#ifndef CT_SHM_OPEN_CALLS_H
#define CT_SHM_OPEN_CALLS_H

#include "shm_process.h"

/* Writes them where they are others than the database has. 0 or -1. */
int ct_shm_save_open_calls(struct ct_shm_process *process, struct ct_ledger *ledger);

#endif
