/* The minimum duration of a long call, in ticks. Long calls may use the reserve of a nearly full ring. */
#ifndef CT_LONG_CALL_H
#define CT_LONG_CALL_H

#include <stdint.h>

/* Starts measuring the clock's rate. Must be called once the process has chosen its clock. */
void ct_long_begin(void);
/* Returns 100 microseconds in ticks, or slightly less while the tick rate is not known precisely. */
uint64_t ct_long_ticks(void);

#endif
