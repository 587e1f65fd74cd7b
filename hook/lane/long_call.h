/* How many ticks a long call takes: one that has a place in the ring where it is nearly full. */
#ifndef CT_LONG_CALL_H
#define CT_LONG_CALL_H

#include <stdint.h>

/* Begins to measure the clock's rate, when the process has chosen its clock. */
void ct_long_begin(void);
/* 100 microseconds, or somewhat less while the rate is hardly known. */
uint64_t ct_long_ticks(void);

#endif
