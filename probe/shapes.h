/* The shapes of functions (calls.h), found by rehearsals: each decoder runs on recognisable arguments, and
 * its reads are noted. */
#ifndef CT_PROBE_SHAPES_H
#define CT_PROBE_SHAPES_H

#include "calls.h"

/* Returns the shapes of the driver's functions, by row (rows.h), or NULL if out of memory. They are not
 * freed. */
const struct ct_probe_shape *ct_shapes_find(void);

#endif
