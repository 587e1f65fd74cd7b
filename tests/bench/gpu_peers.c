/* Peers that gpu_calls.py compares with cudatrace. Each peer is a library that is preloaded like the hook,
 * and exports the three functions that gpu_calls.c calls. Around each call to the driver's own function, the
 * library does the work that the macro PEER selects, and writes the data that a tracer typically records. The
 * peers are as cheap as possible: they have no tables, do not support nested calls, and wrap only these three
 * functions.
 *
 *   PEER_WRAPPER     nothing, which shows the cost of a wrapper
 *   PEER_COUNTERS    two reads of the time-stamp counter
 *   PEER_CLOCK_RING  two calls to clock_gettime() and a 64-byte record in a ring
 *   PEER_JSON_LINES  a line of JSON at entry and one at return, through stdio into a file
 *   PEER_JSON_FLUSHED the same, but flushed so that each line survives if the process is killed */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "clock.h"
#include "cuda_min.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PEER_WRAPPER      0
#define PEER_COUNTERS     1
#define PEER_CLOCK_RING   2
#define PEER_JSON_LINES   3
#define PEER_JSON_FLUSHED 4
#define IS_JSON           (PEER == PEER_JSON_LINES || PEER == PEER_JSON_FLUSHED)

#define EXPORT __attribute__((visibility("default")))

enum { CONTEXT, DEVICE, LAUNCH };

static CUresult (*real_context)(CUcontext *);
static CUresult (*real_device)(CUdevice *);
static CUresult (*real_launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                               unsigned, CUstream, void **, void **);

#if PEER == PEER_WRAPPER || PEER == PEER_COUNTERS
static volatile uint64_t sink;
#endif

#if PEER == PEER_CLOCK_RING
struct clock_record {
    uint64_t start_ns, end_ns, function, thread, status, unused[3];
};
enum { RING = 1 << 14 };
static struct clock_record ring[RING];
static uint64_t ring_head;
#endif

#if IS_JSON
static const char *const names[] = { "cuCtxGetCurrent", "cuCtxGetDevice", "cuLaunchKernel" };
enum { BUFFER_BYTES = 1 << 20 };
static FILE *out;
static __thread long own_tid;

static long thread_number(void)
{
    if (!own_tid)
        own_tid = syscall(SYS_gettid);
    return own_tid;
}

static void end_line(void)
{
    if (PEER == PEER_JSON_FLUSHED)
        fflush(out);
}
#endif

/* Writes the JSON line for the entry to a call, and returns the time, which the line contains together with
 * the calling thread. The entry line of a launch, which another function writes, also contains the launch's
 * dimensions. */
static inline uint64_t before(int function)
{
    (void)function;
#if PEER == PEER_COUNTERS
    return ct_counter_read();
#elif PEER == PEER_CLOCK_RING
    return ct_monotonic_ns();
#elif IS_JSON
    const uint64_t now = ct_monotonic_ns();
    if (function != LAUNCH) {
        fprintf(out, "{\"event\":\"enter\",\"name\":\"%s\",\"tid\":%ld,\"ns\":%" PRIu64 "}\n",
                names[function], thread_number(), now);
        end_line();
    }
    return now;
#else
    return 0;
#endif
}

static inline void after(int function, uint64_t start, CUresult status)
{
    (void)function;
    (void)start;
    (void)status;
#if PEER == PEER_WRAPPER
    sink = (uint64_t)status;
#elif PEER == PEER_COUNTERS
    sink = ct_counter_read() - start;
#elif PEER == PEER_CLOCK_RING
    struct clock_record *record = &ring[ring_head & (RING - 1)];
    *record = (struct clock_record){ .start_ns = start,
                                     .end_ns = ct_monotonic_ns(),
                                     .function = (uint64_t)function,
                                     .thread = 1,
                                     .status = (uint64_t)status };
    __atomic_store_n(&ring_head, ring_head + 1, __ATOMIC_RELEASE);
#elif IS_JSON
    const uint64_t now = ct_monotonic_ns();
    fprintf(out,
            "{\"event\":\"return\",\"name\":\"%s\",\"tid\":%ld,\"ns\":%" PRIu64 ",\"duration_ns\":%" PRIu64
            ",\"status\":%d}\n",
            names[function], thread_number(), now, now - start, (int)status);
    end_line();
#endif
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context)
{
    const uint64_t start = before(CONTEXT);
    const CUresult status = real_context(context);
    after(CONTEXT, start, status);
    return status;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
    const uint64_t start = before(DEVICE);
    const CUresult status = real_device(device);
    after(DEVICE, start, status);
    return status;
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                               CUstream stream, void **params, void **extra)
{
    const uint64_t start = before(LAUNCH);
#if IS_JSON
    fprintf(out,
            "{\"event\":\"enter\",\"name\":\"cuLaunchKernel\",\"tid\":%ld,\"ns\":%" PRIu64
            ",\"function\":\"%p\","
            "\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"shared\":%u,\"stream\":\"%p\"}\n",
            thread_number(), start, (void *)function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
            shared_bytes, (void *)stream);
    end_line();
#endif
    const CUresult status = real_launch(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                        shared_bytes, stream, params, extra);
    after(LAUNCH, start, status);
    return status;
}

static void *next(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    if (!function) {
        fprintf(stderr, "gpu_peers: no %s\n", name);
        _exit(EXIT_FAILURE);
    }
    return function;
}

__attribute__((constructor)) static void begin(void)
{
    /* The library is also preloaded into the program's parents. */
    if (!dlsym(RTLD_NEXT, "cuLaunchKernel"))
        return;
    real_context = (CUresult(*)(CUcontext *))next("cuCtxGetCurrent");
    real_device = (CUresult(*)(CUdevice *))next("cuCtxGetDevice");
    real_launch = (CUresult(*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                               unsigned, CUstream, void **, void **))next("cuLaunchKernel");
#if IS_JSON
    const char *folder = getenv("BENCH_FOLDER");
    const int fd = open(folder ? folder : "/tmp", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!out) {
        perror("gpu_peers: a file for lines of JSON");
        _exit(EXIT_FAILURE);
    }
    setvbuf(out, NULL, _IOFBF, BUFFER_BYTES);
#endif
}
