/* The state of the loaded BPF programs. Used by programs.c and channels.c. */
#ifndef CT_PROBE_PROGRAMS_STATE_H
#define CT_PROBE_PROGRAMS_STATE_H

#include "calls.h"
#include "hook_rule.h"

#include "calls.skel.h" /* needs calls.h */

#include <stdbool.h>
#include <stdint.h>

enum { CT_TRACEPOINTS = 5 };

struct ct_programs {
    struct ct_calls *calls;     /* the skeleton */
    int method;                 /* enum ct_method */
    uint64_t seen_ns, whole_ns; /* struct ct_probe_cost */
    struct bpf_link *tracepoint[CT_TRACEPOINTS];
    uint32_t links;                      /* number of struct ct_links that were made */
    uint8_t channel[CT_PROBE_PROCESSES]; /* state of each channel (channels.c) */
    int blank[3];                        /* maps that take the place of freed ones; 0: not made yet */
};

#endif
