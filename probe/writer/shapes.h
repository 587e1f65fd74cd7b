/* Finds the shapes of functions (calls.h) by rehearsals: runs each decoder with recognisable arguments, and
 * notes its reads. */
#ifndef CT_PROBE_SHAPES_H
#define CT_PROBE_SHAPES_H

#include "calls.h"

/* Returns the shapes of the driver's functions, by row (rows.h), or NULL if out of memory. The shapes are
 * never freed. */
const struct ct_probe_shape *ct_shapes_find(void);

#endif
