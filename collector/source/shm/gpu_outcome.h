/* Describes the result of a process's request to record its GPU work. */
#ifndef CT_GPU_OUTCOME_H
#define CT_GPU_OUTCOME_H

#include "fact.h"
#include "segment.h"

/* The description while a process is recording or has recorded its GPU work. */
#define CT_GPU_RECORDED "recorded"

/* Writes CT_GPU_RECORDED, or why the process does not record its GPU work. `gpu` is the value of
 * `segment->gpu`, read with acquire. Returns false, and an empty text, if there is no result: nothing was
 * requested, or the recording is starting. */
bool ct_gpu_outcome(const struct ct_segment *segment, uint32_t gpu, char text[CT_GPU_TEXT_BYTES]);

#endif
