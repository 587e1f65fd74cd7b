/* DMA fences (--kernel): attaches the BPF programs (fences.bpf.c) to the tracepoints in the group
 * `dma_fence`.
 */
#ifndef CT_PROBE_FENCES_H
#define CT_PROBE_FENCES_H

#include "programs.h"

#include <stdbool.h>

struct bpf_link;
struct ct_fences {
    int number[CT_FENCE_POINTS]; /* of the tracepoints */
    struct bpf_link *link[CT_FENCE_POINTS];
};

/* Finds the tracepoints. Returns false if the kernel does not have them, and prints the reason. `tracefs` is
 * the result of ct_tracefs_open(): a descriptor or -errno. */
bool ct_fences_find(struct ct_fences *fences, int tracefs);
/* Attaches the programs, which must already be loaded. Requires CAP_PERFMON. Prints any error. Recording
 * begins with the first recorded process, so the channel for events of the machine must already be set. */
void ct_fences_attach(struct ct_fences *fences, struct ct_programs *programs);
void ct_fences_detach(struct ct_fences *fences);

#endif
