/* The minimum duration of a long call, in ticks. A long call may use the reserve of a ring that is nearly
 * full. */
#ifndef CT_LONG_CALL_H
#define CT_LONG_CALL_H

#include <stdint.h>

/* Starts measuring the clock's rate. Must be called once the process has chosen its clock. */
void ct_long_begin(void);
/* Returns 100 microseconds in ticks, or somewhat less while the tick rate is not yet known precisely. */
uint64_t ct_long_ticks(void);

#endif
