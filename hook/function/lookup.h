/* Replaces the results of a program's function lookups. */
#ifndef CT_LOOKUP_H
#define CT_LOOKUP_H

#include <stdbool.h>

/* Replaces the address that the driver returned for `name` with the function's stub. A function without a row
 * gets a fallback stub, unless `name` is NULL. */
void ct_lookup_replace(void **answer, const char *name);

#endif
