/* The rows of the functions of gpu_sums.h. */
#ifndef CT_GPU_SUMS_ROWS_H
#define CT_GPU_SUMS_ROWS_H

#include "scope.h"

#include <stddef.h>
#include <stdint.h>

struct ct_gpu_busy {
    int64_t device, from_ns, to_ns;
    int64_t busy_ns, kernel_ns, copy_ns, both_ns, graph_ns, computing_ns;
    int64_t first_ns, last_ns, early_ns, late_ns;
    int64_t kernels, copies, sets, graphs;
};

struct ct_gpu_idle {
    int64_t device;
    char *state, *call; /* call: NULL for states without a call */
    int64_t gaps;
    double idle_ns, period_ns;
    int64_t longest_ns, from_ns;
    char *ended, *begun;
};

struct ct_gpu_share {
    int64_t device, process_id, busy_ns, periods, from_ns, to_ns;
    double alone_ns;
};

struct ct_gpu_recording {
    int64_t process_id, device, recording, from_ns, to_ns, previous_to_ns, unrecorded_from_ns;
};

struct ct_gpu_work {
    int64_t device, process_id;
    char *kind, *kernel, *mangled, *copy_kind; /* all except kind: NULL for none */
    int64_t graph;                             /* of whole graphs */
    int64_t runs, duration_ns, longest_ns, queued_ns, queued_runs, bytes;
};

struct ct_gpu_sums {
    struct ct_gpu_busy *busy;
    struct ct_gpu_idle *idle;
    struct ct_gpu_share *share;
    struct ct_gpu_recording *recording;
    struct ct_gpu_work *work;
    size_t busies, idles, shares, recordings, works;
};

#endif
