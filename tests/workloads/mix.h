/* mix.h: the mixes of calls that the "calls" workload makes, one call per step. */
#ifndef WORKLOAD_MIX_H
#define WORKLOAD_MIX_H

#include "workload.h"

enum mix { MIX_GETCTX, MIX_TRAINING, MIX_ALLOC, MIX_COPY, MIX_LAUNCH };
extern const char *const mix_words[]; /* in the order of enum mix, terminated by NULL */

enum { BUFFER_BYTES = 65536, STREAM_ROOM = 8, BLOCK_ROOM = 16 };

/* The objects that all threads of a process share. */
struct shared {
    CUcontext context;
    CUlibrary library;
    CUmodule module;
    CUkernel fill, *kernels;
};

/* A thread's own objects, and their expected contents. */
struct worker {
    const struct shared *shared;
    uint64_t random;
    uint64_t calls, failed; /* `failed` counts the calls that failed as expected */

    CUstream stream;
    CUdeviceptr buffer, second;           /* device memory */
    unsigned char expected[BUFFER_BYTES]; /* content of `buffer` */
    unsigned char read[BUFFER_BYTES];
    size_t read_bytes; /* number of bytes of a read that is completed by the next synchronization */
    bool copied;       /* `second` holds what `buffer` held at the last copy */
    unsigned char copy[BUFFER_BYTES];

    CUstream streams[STREAM_ROOM];
    size_t stream_count;
    CUdeviceptr blocks[BLOCK_ROOM];
    bool block_is_async[BLOCK_ROOM];
    size_t block_count;
    void *host;
    CUevent event;
};

void mix_start_process(struct shared *shared);
void mix_start_thread(struct worker *worker, const struct shared *shared, uint64_t seed);

/* Makes exactly one driver call, and ends the process if any result is wrong. */
void mix_step(struct worker *worker, enum mix mix);

#endif
