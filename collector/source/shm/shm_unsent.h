/* The counters of calls that the hook saw and did not send: those of the segment's directory, and those that
 * each lane has of its own. A function's are the sum. */
#ifndef CT_SHM_UNSENT_H
#define CT_SHM_UNSENT_H

#include "shm_process.h"

/* Saves them where the hook says that they moved. 0 or -1. */
int ct_shm_save_unsent(struct ct_shm_process *process, struct ct_ledger *ledger);

#endif
