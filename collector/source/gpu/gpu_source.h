/* The source of the GPUs' samples. Provides no calls. Passes each sample to the ledger once, in the batch
 * after it was taken. Samples are taken while any of the sources listed before this one has threads that are
 * being recorded. */
#ifndef CT_GPU_SOURCE_H
#define CT_GPU_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

struct ct_source;

#define CT_GPU_INTERVAL_DEFAULT_NS UINT64_C(1000000000)

/* Parses an interval from 100ms to 60s, or "off", which gives 0. Returns false for any other text. */
bool ct_gpu_interval_parse(const char *text, uint64_t *interval_ns);
/* Returns NULL for the interval 0, or if the source cannot be created, which is logged. */
struct ct_source *ct_gpu_source_create(uint64_t interval_ns);
/* Call when no batch is being made. `source` may be NULL. Waits at most a second. */
void ct_gpu_source_destroy(struct ct_source *source);

#endif
