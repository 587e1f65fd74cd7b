/* Ranges of the process: any thread may end them. */
#ifndef CT_RANGE_PROCESS_H
#define CT_RANGE_PROCESS_H

#include "range_text.h"

/* Finds the row of the function under which they are recorded; false when there is none. */
bool ct_range_process_begin(void);

/* Never 0. */
uint64_t ct_range_start(const struct ct_said *said);
void ct_range_end(uint64_t id, const void *frame);

#endif
