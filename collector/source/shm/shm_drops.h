/* Saves the numbers of calls that the hook saw but did not send. The number for a function is the sum of its
 * counters in the segment's directory and in all lanes. */
#ifndef CT_SHM_DROPS_H
#define CT_SHM_DROPS_H

#include "shm_process.h"

/* Saves the counters if the hook has marked any as changed. Returns 0 or -1. */
int ct_shm_save_drops(struct ct_shm_process *process, struct ct_ledger *ledger);

#endif
