/* The shapes of functions (calls.h), found by rehearsing their decoders: each one runs on arguments that it
 * can recognise, and its reads are noted. */
#ifndef CT_PROBE_SHAPES_H
#define CT_PROBE_SHAPES_H

#include "calls.h"

/* Returns the shapes of the driver's functions, by row (rows.h); NULL without memory. They are never freed.
 */
const struct ct_probe_shape *ct_shapes_find(void);

#endif
