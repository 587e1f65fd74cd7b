/* Replaces the results of a program's look-ups of functions. */
#ifndef CT_LOOKUP_H
#define CT_LOOKUP_H

#include <stdbool.h>

/* Replaces the driver's answer for `name` with a stub: the stub of the function's row, or a fallback one
 * unless `name` is NULL. */
void ct_lookup_replace(void **answer, const char *name);

#endif
