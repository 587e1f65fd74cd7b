/* Reads CUPTI's activity records. */
#ifndef CT_ACTIVITY_H
#define CT_ACTIVITY_H

#include "cupti.h"

/* The kinds of activity that a recording enables, as of CUpti_ActivityKind. The last one is 0. */
extern const int32_t ct_activity_kinds[];

/* Passes the work in a buffer of `valid` bytes to the host. Leaves out work whose correlation is `before` or
 * higher. Counts records without times as dropped. */
void ct_activity_read(const struct ct_gpu_host *host, const struct ct_cupti *cupti, uint8_t *buffer,
                      size_t valid, uint32_t before);

#endif
