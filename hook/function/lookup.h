/* Replaces the results of a program's function lookups. */
#ifndef CT_LOOKUP_H
#define CT_LOOKUP_H

#include <stdbool.h>

/* Replaces the address that the driver returned for `name` with a stub. Uses the stub of the function's row,
 * or a fallback stub if the function has no row and `name` is not NULL. */
void ct_lookup_replace(void **answer, const char *name);

#endif
