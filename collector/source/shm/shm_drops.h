/* The counters of calls that the hook saw and did not send. A function's count is the sum of the segment's
 * directory and of each lane's own counters. */
#ifndef CT_SHM_DROPS_H
#define CT_SHM_DROPS_H

#include "shm_process.h"

/* Saves the counters that the hook has marked as moved. Returns 0 or -1. */
int ct_shm_save_drops(struct ct_shm_process *process, struct ct_ledger *ledger);

#endif
