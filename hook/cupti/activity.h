/* Reads CUPTI's activity records. */
#ifndef CT_ACTIVITY_H
#define CT_ACTIVITY_H

#include "cupti.h"

/* The kinds of activity that a recording enables, as of CUpti_ActivityKind. The last one is 0. */
extern const int32_t ct_activity_kinds[];
/* The kind for whole graphs, from CUDA 11.7 on with drivers from 515 on (CUPTI's release notes). */
enum { CT_ACTIVITY_GRAPH_TRACE = 51 };

/* The work that a recording leaves out. */
struct ct_activity_limits {
    uint32_t after;     /* work with this correlation or a lower one; 0: none */
    uint32_t before;    /* work with this correlation or a higher one */
    bool without_nodes; /* work of the nodes of graphs, because the graphs are recorded as a whole */
};
/* Passes the work in a buffer of `valid` bytes to the host, within the limits. Counts records without times
 * as dropped. */
void ct_activity_read(const struct ct_gpu_host *host, const struct ct_cupti *cupti, uint8_t *buffer,
                      size_t valid, const struct ct_activity_limits *limits);
/* Passes work in bodies of conditional nodes on, once its launch is known, or after some collections. Must be
 * called after each collection of buffers. `is_last` leaves none. */
void ct_activity_settle(const struct ct_gpu_host *host, const struct ct_activity_limits *limits,
                        bool is_last);

#endif
