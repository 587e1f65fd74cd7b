/* Process ranges, which any thread may end. */
#ifndef CT_RANGE_PROCESS_H
#define CT_RANGE_PROCESS_H

#include "range_text.h"

/* Finds the row under which process ranges are recorded. Returns false if the row is not available. */
bool ct_range_process_begin(void);

/* Starts a range and returns its identifier, which is never 0. */
uint64_t ct_range_start(const struct ct_said *said);
void ct_range_end(uint64_t id, const void *frame);

#endif
