/* Process ranges, which any thread may end. */
#ifndef CT_RANGE_PROCESS_H
#define CT_RANGE_PROCESS_H

#include "range_text.h"

/* Finds the row for process ranges. Returns false if it is not available. */
bool ct_range_process_begin(void);

/* Starts a range and returns its ID, which is never 0. */
uint64_t ct_range_start(const struct ct_said *said);
void ct_range_end(uint64_t id, const void *frame);

#endif
