/* A function of this program that does nothing. The probe attaches to this function to measure the probe's
 * own overhead. */
#ifndef CT_MEASURED_CALL_H
#define CT_MEASURED_CALL_H

#include "calls.h"

#include <stdbool.h>
#include <stdint.h>

enum { CT_MEASURED_CALLS = 2000 };

/* Finds the function's offset in the program's file. Returns whether it was found. */
bool ct_measured_call_find(uint64_t *offset);
/* Makes CT_MEASURED_CALLS calls, which return 0, 1, 2 and so on. Returns the median of their durations in
 * nanoseconds. */
uint64_t ct_measured_calls_ns(void);
/* Reads the records of the calls from a channel's ring, whose descriptor is `map`. Stores their durations in
 * nanoseconds in `seen`. Returns 0, -ENODATA if records are missing, or another -errno. */
int ct_measured_calls_read(int map, uint64_t seen[CT_MEASURED_CALLS]);
/* Sorts the values and returns their median. */
uint64_t ct_measured_median(uint64_t values[CT_MEASURED_CALLS]);

#endif
