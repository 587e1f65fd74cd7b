/* A tracer that uses CUPTI, which gpu_calls.py measures as a peer. The driver loads this library through
 * CUDA_INJECTION64_PATH and calls InitializeInjection() during cuInit. BENCH_CUPTI selects how this library
 * records:
 *
 *   activity          CUPTI's own records of driver calls (CUPTI_ACTIVITY_KIND_DRIVER)
 *   activity-kernels  records of driver calls and of kernels
 *   kernels           records of kernels, copies and sets, which `cudatrace run --gpu` enables, too
 *   callback          callbacks at entry to and return from each driver call, which do the least that a
 *                     tracer must do: read the counter, and write a 64-byte record into a ring
 *
 * At exit, the library writes a line `records DRIVER KERNELS DROPPED KERNEL_NS` to the file BENCH_CUPTI_OUT,
 * so that a tracer that recorded nothing is not mistaken for a fast one. If a CUPTI function failed, the
 * library also writes `error NAME CODE`. Activity buffers are kept and reused. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cupti.h>

enum { BUFFER_BYTES = 4 << 20, BUFFERS = 16, RECORD_ALIGN = 8, RING = 1 << 14 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the variables below */
static uint8_t *idle_buffers[BUFFERS];
static int idle_count;
static uint64_t driver_records, kernel_records, kernel_ns;
static struct {
    const char *where;
    int code;
} first_error;

/* A record in the ring. During the timing, only the thread that calls the driver writes records. */
struct ring_record {
    uint64_t start, end, function, correlation, status, unused[3];
};
static struct ring_record ring[RING];
static _Atomic uint64_t ring_head;

static pid_t owner; /* a forked child inherits the handlers, and must not write */

static void note_error(const char *where, CUptiResult result)
{
    pthread_mutex_lock(&lock);
    if (!first_error.where) {
        first_error.where = where;
        first_error.code = (int)result;
    }
    pthread_mutex_unlock(&lock);
}

#define TRY(call)                                                                                            \
    do {                                                                                                     \
        const CUptiResult result_ = (call);                                                                  \
        if (result_ != CUPTI_SUCCESS)                                                                        \
            note_error(#call, result_);                                                                      \
    } while (0)

static void CUPTIAPI buffer_requested(uint8_t **buffer, size_t *bytes, size_t *records)
{
    pthread_mutex_lock(&lock);
    *buffer = idle_count > 0 ? idle_buffers[--idle_count] : NULL;
    pthread_mutex_unlock(&lock);
    if (!*buffer)
        *buffer = aligned_alloc(RECORD_ALIGN, BUFFER_BYTES);
    *bytes = *buffer ? BUFFER_BYTES : 0;
    *records = 0;
}

static void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                      size_t valid)
{
    (void)context;
    (void)stream;
    (void)bytes;
    uint64_t driver = 0, kernels = 0, ns = 0;
    CUpti_Activity *record = NULL;
    while (valid > 0 && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        driver += record->kind == CUPTI_ACTIVITY_KIND_DRIVER;
        if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            continue;
        const CUpti_ActivityKernel9 *kernel = (const CUpti_ActivityKernel9 *)record;
        kernels++;
        ns += kernel->end - kernel->start;
    }
    pthread_mutex_lock(&lock);
    driver_records += driver;
    kernel_records += kernels;
    kernel_ns += ns;
    const bool keep = idle_count < BUFFERS;
    if (keep)
        idle_buffers[idle_count++] = buffer;
    pthread_mutex_unlock(&lock);
    if (!keep)
        free(buffer);
}

static void CUPTIAPI callback(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                              const void *info)
{
    (void)unused;
    const CUpti_CallbackData *call = info;
    if (domain != CUPTI_CB_DOMAIN_DRIVER_API)
        return;
    if (call->callbackSite == CUPTI_API_ENTER) {
        *call->correlationData = ct_counter_read();
        return;
    }
    const uint64_t head = atomic_load_explicit(&ring_head, memory_order_relaxed);
    ring[head & (RING - 1)] = (struct ring_record){
        .start = *call->correlationData,
        .end = ct_counter_read(),
        .function = id,
        .correlation = call->correlationId,
        .status = call->functionReturnValue ? *(const uint32_t *)call->functionReturnValue : 0,
    };
    atomic_store_explicit(&ring_head, head + 1, memory_order_release);
}

static void at_exit(void)
{
    const char *path = getenv("BENCH_CUPTI_OUT");
    size_t dropped = 0;
    if (getpid() != owner || !path)
        return;
    TRY(cuptiActivityFlushAll(0));
    TRY(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    TRY(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
    FILE *out = fopen(path, "we");
    if (!out)
        return;
    pthread_mutex_lock(&lock);
    fprintf(out, "records %llu %llu %llu %llu\n",
            (unsigned long long)(driver_records + atomic_load_explicit(&ring_head, memory_order_relaxed)),
            (unsigned long long)kernel_records, (unsigned long long)dropped, (unsigned long long)kernel_ns);
    if (first_error.where)
        fprintf(out, "error %s %d\n", first_error.where, first_error.code);
    pthread_mutex_unlock(&lock);
    fclose(out);
}

/* Touches every page of the buffers now, so that no page fault happens while calls are timed. */
static void make_buffers(void)
{
    for (; idle_count < BUFFERS; idle_count++) {
        uint8_t *buffer = aligned_alloc(RECORD_ALIGN, BUFFER_BYTES);
        if (!buffer)
            return;
        memset(buffer, 0, BUFFER_BYTES);
        idle_buffers[idle_count] = buffer;
    }
}

__attribute__((visibility("default"))) int InitializeInjection(void);

int InitializeInjection(void)
{
    const char *mode = getenv("BENCH_CUPTI");
    if (owner == getpid() || !mode)
        return 1;
    owner = getpid();
    if (strcmp(mode, "callback") == 0) {
        CUpti_SubscriberHandle subscriber;
        memset(ring, 0, sizeof(ring));
        TRY(cuptiSubscribe(&subscriber, (CUpti_CallbackFunc)callback, NULL));
        TRY(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API));
    } else {
        make_buffers();
        TRY(cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed));
        const bool kernels_alone = strcmp(mode, "kernels") == 0;
        if (!kernels_alone)
            TRY(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER));
        if (kernels_alone || strcmp(mode, "activity-kernels") == 0)
            TRY(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
        if (kernels_alone) {
            TRY(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY));
            TRY(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET));
        }
    }
    atexit(at_exit);
    return 1;
}
