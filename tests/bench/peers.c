/* See peers.h. The code that represents another tracer is as cheap as that tracer's design allows, so that a
 * comparison with it does not flatter cudatrace. For example, a thread's ID is read only once, and each
 * thread has its own ring. */
#include "peers.h"

#include "clock.h"
#include "null_driver.h"
#include "tracepoints.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bench_call *bare;

/* ---- subjects ---- */

static void **kernels;
static long kernel_count;
static char copied[64];

static bool get_kernels(long count)
{
    kernels = calloc((size_t)count, sizeof(*kernels));
    char name[64];
    for (; kernels && kernel_count < count; kernel_count++) {
        snprintf(name, sizeof(name), "bench_kernel_%ld", kernel_count);
        if (cuModuleGetFunction(&kernels[kernel_count], kernels, name) != 0)
            return false;
    }
    return kernels;
}

/* Returns the kernels in turn. */
static void *next_kernel(void)
{
    static __thread long next;
    void *const kernel = kernels[next];
    next = next + 1 == kernel_count ? 0 : next + 1;
    return kernel;
}

static int launch_bare(void **context)
{
    (void)context;
    return bench_driver()->launch(next_kernel(), 64, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL);
}
static int launch_traced(void **context)
{
    (void)context;
    return cuLaunchKernel(next_kernel(), 64, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL);
}
static int copy_bare(void **context)
{
    (void)context;
    return bench_driver()->copy(0x7f0000000000, copied, sizeof(copied));
}
static int copy_traced(void **context)
{
    (void)context;
    return cuMemcpyHtoD_v2(0x7f0000000000, copied, sizeof(copied));
}
static int spin_bare(void **context)
{
    return bench_driver()->get_flags((unsigned int *)(void *)context);
}
static int spin_traced(void **context)
{
    return cuCtxGetFlags((unsigned int *)(void *)context);
}
static int instant_traced(void **context)
{
    return cuCtxGetCurrent(context);
}

const struct bench_subject *bench_subject(const char *name, double ns_per_tick)
{
    static struct bench_subject subjects[] = {
        { "instant", NULL, instant_traced },
        { "launch", launch_bare, launch_traced },
        { "copy", copy_bare, copy_traced },
        { "spin", spin_bare, spin_traced },
    };
    subjects[0].bare = bench_driver()->get_current;
    const size_t length = strcspn(name, ":");
    const char *const number = name[length] ? name + length + 1 : NULL;
    for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++) {
        struct bench_subject *const subject = &subjects[i];
        if (strlen(subject->name) != length || strncmp(subject->name, name, length) != 0)
            continue;
        if (cuInit(0) != 0)
            return NULL;
        if (subject->bare == launch_bare && !get_kernels(number ? atol(number) : 1))
            return NULL;
        if (subject->bare == spin_bare)
            bench_spin(number ? (uint64_t)(atof(number) / ns_per_tick) : 0);
        return subject;
    }
    return NULL;
}

/* ---- floors ---- */

static __thread volatile uint64_t sink;

static int bare_call(void **context)
{
    return bare(context);
}

/* A wrapper that only makes the call. It shows the cost that all of the following wrappers include. */
__attribute__((noinline)) static int wrapper_call(void **context)
{
    const int status = bare(context);
    sink = (uint64_t)status;
    return status;
}

__attribute__((noinline)) static int counters_call(void **context)
{
    const uint64_t start = ct_counter_read();
    const int status = bare(context);
    sink = ct_counter_read() - start;
    return status;
}

__attribute__((noinline)) static int clocks_call(void **context)
{
    const uint64_t start = ct_monotonic_ns();
    const int status = bare(context);
    sink = ct_monotonic_ns() - start;
    return status;
}

/* ---- a ring by clock_gettime: two vDSO clocks and a 64-byte record ---- */

enum { RING = 1 << 14 };
struct clock_record {
    uint64_t start_ns, end_ns, function, thread, status, unused[3];
};
static __thread struct clock_record *ring;
static __thread uint64_t ring_head;

__attribute__((noinline)) static int clock_ring_call(void **context)
{
    if (__builtin_expect(!ring, 0) && !(ring = calloc(RING, sizeof(*ring))))
        abort();
    const uint64_t start = ct_monotonic_ns();
    const int status = bare(context);
    struct clock_record *record = &ring[ring_head & (RING - 1)];
    *record = (struct clock_record){
        .start_ns = start, .end_ns = ct_monotonic_ns(), .function = 7, .thread = 1, .status = (uint64_t)status
    };
    __atomic_store_n(&ring_head, ring_head + 1, __ATOMIC_RELEASE);
    return status;
}

/* ---- JSON lines: one when the call begins and one when it ends, by stdio ---- */

static FILE *json, *json_flushed;

static void json_line(FILE *file, const char *event, int status)
{
    static __thread int tid;
    if (!tid)
        tid = gettid();
    fprintf(file,
            "{\"event\":\"%s\",\"time_ns\":%" PRIu64
            ",\"tid\":%d,\"function\":\"cuCtxGetCurrent\",\"status\":%d}\n",
            event, ct_monotonic_ns(), tid, status);
}

__attribute__((noinline)) static int json_call(void **context)
{
    json_line(json, "begin", 0);
    const int status = bare(context);
    json_line(json, "end", status);
    return status;
}

/* Flushes each line, so that the lines of a killed process survive. */
__attribute__((noinline)) static int json_flushed_call(void **context)
{
    json_line(json_flushed, "begin", 0);
    fflush(json_flushed);
    const int status = bare(context);
    json_line(json_flushed, "end", status);
    fflush(json_flushed);
    return status;
}

static FILE *open_in(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", folder ? folder : ".", name);
    FILE *file = fopen(path, "we");
    if (!file)
        perror(path);
    return file;
}

void bench_peers_rewind(void)
{
    FILE *const files[] = { json, json_flushed };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (!files[i])
            continue;
        rewind(files[i]);
        if (ftruncate(fileno(files[i]), 0) != 0)
            perror("ftruncate");
    }
}

/* ---- by name ---- */

static bench_call *from_tracepoints(const char *name, const char *path)
{
    static const struct bench_tracepoints *tracepoints;
    if (!tracepoints) {
        void *const library = path ? dlopen(path, RTLD_NOW) : NULL;
        void *const found = library ? dlsym(library, "bench_tracepoints") : NULL;
        if (!found) {
            fprintf(stderr, "hook_cost: no tracepoints: %s\n", path ? dlerror() : "no library named");
            return NULL;
        }
        tracepoints = ((const struct bench_tracepoints *(*)(bench_call *))(uintptr_t)found)(bare);
    }
    return strcmp(name, "lttng_one_event") == 0         ? tracepoints->one_event
           : strcmp(name, "lttng_clock_and_event") == 0 ? tracepoints->clock_and_event
                                                        : tracepoints->two_events;
}

bench_call *bench_peer(const char *name, const struct bench_subject *subject,
                       const struct bench_places *places)
{
    const struct {
        const char *name;
        bench_call *call;
    } peers[] = {
        { "bare", bare_call },
        { "wrapper", wrapper_call },
        { "two_counter_reads", counters_call },
        { "two_clock_reads", clocks_call },
        { "clock_ring", clock_ring_call },
        { "json_lines", json_call },
        { "json_lines_flushed", json_flushed_call },
        { "uprobes_tracefs", bench_probed_tracefs },
        { "uprobes_bpftrace", bench_probed_bpftrace },
        { "cudatrace", subject->traced },
    };
    bare = subject->bare;
    if (strncmp(name, "lttng_", 6) == 0)
        return from_tracepoints(name, places->tracepoints);
    for (size_t i = 0; i < sizeof(peers) / sizeof(peers[0]); i++) {
        if (strcmp(peers[i].name, name) != 0)
            continue;
        if (peers[i].call == json_call && !json && !(json = open_in(places->folder, "lines.json")))
            return NULL;
        if (peers[i].call == json_flushed_call && !json_flushed &&
            !(json_flushed = open_in(places->folder, "flushed_lines.json")))
            return NULL;
        return peers[i].call;
    }
    fprintf(stderr, "hook_cost: no way '%s' to call\n", name);
    return NULL;
}
