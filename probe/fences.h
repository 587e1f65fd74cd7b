/* DMA fences (--kernel): attaches the BPF programs (fences.bpf.c) to the tracepoints of the group dma_fence.
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

/* Finds the tracepoints. Returns whether the kernel has them. If not, prints the reason. `tracefs` is a
 * descriptor or -errno (ct_tracefs_open()). */
bool ct_fences_find(struct ct_fences *fences, int tracefs);
/* Attaches the programs, which must be loaded. Requires CAP_PERFMON. Prints an error. Events are recorded as
 * soon as a process is recorded, so the channel for events of the machine must be set. */
void ct_fences_attach(struct ct_fences *fences, struct ct_programs *programs);
void ct_fences_detach(struct ct_fences *fences);

#endif
