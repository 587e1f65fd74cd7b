/* A thread that samples all GPUs at an interval while processes are traced. Calls to NVML can block for a
 * long time, so only this thread makes them. While no process is traced, the library is not even loaded,
 * because a program that uses NVML keeps the GPUs powered and the driver in use. */
#ifndef CT_GPU_SAMPLER_H
#define CT_GPU_SAMPLER_H

#include "nvml.h"

struct ct_gpu_sampler;

/* A fact about a GPU. `gpu` is valid, and its texts and facts do not change, until the sampler is
 * destroyed. */
struct ct_gpu_item {
    const struct ct_gpu *gpu;
    enum ct_fact_type type; /* CT_FACT_GPU, CT_FACT_GPU_SAMPLE or CT_FACT_GPU_PROCESS */
    union {
        struct ct_gpu_sample_facts sample;
        struct ct_gpu_process_facts process;
    };
};
struct ct_gpu_items {
    struct ct_gpu_item *item;
    size_t count, room;
};

enum { CT_GPU_ITEMS_MAX = 1 << 14 }; /* items beyond this number are lost until the items are taken */

/* Creates the thread. Returns NULL if out of memory, or if no thread can be created. */
struct ct_gpu_sampler *ct_gpu_sampler_create(uint64_t interval_ns);
/* Ends the thread. If a call to NVML does not return within a second, abandons the thread, and logs that. The
 * process then exits without running the library's destructors. */
void ct_gpu_sampler_destroy(struct ct_gpu_sampler *sampler);
/* Starts or stops taking samples. Returns at once. */
void ct_gpu_sampler_set(struct ct_gpu_sampler *sampler, bool is_wanted);
/* Exchanges the collected items for `items`, which must be empty. Returns the number of items lost since the
 * last exchange. */
uint64_t ct_gpu_sampler_take(struct ct_gpu_sampler *sampler, struct ct_gpu_items *items);

#endif
