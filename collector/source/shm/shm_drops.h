/* Saves the counts of calls that the hook saw but did not send. A function's count is the sum of its counters
 * in the segment's directory and in all lanes. */
#ifndef CT_SHM_DROPS_H
#define CT_SHM_DROPS_H

#include "shm_process.h"

/* Saves the counters if the hook has marked some as changed. Returns 0 or -1. */
int ct_shm_save_drops(struct ct_shm_process *process, struct ct_ledger *ledger);

#endif
