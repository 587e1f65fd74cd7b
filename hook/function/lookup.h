/* The ways in: what programs get when they look functions up. */
#ifndef CT_LOOKUP_H
#define CT_LOOKUP_H

#include <stdbool.h>

/* Puts a stub in the place of what the driver has answered for `name`: that of the function's row, else,
 * unless `name` is NULL, a spare one. */
void ct_lookup_replace(void **answer, const char *name);

#endif
