/* What a traced call costs more than the bare one, beside what two clock readings cost. Run under the hook by
 * bench.py, with a daemon and default settings. Rounds are interleaved: in each, every variant is timed in
 * batches, and the round's figure is the median batch. Prints `variant round ns`. */
#include "clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A round's calls fit a ring of the default size; between rounds the daemon empties it. */
enum { ROUNDS = 25, BATCHES = 100, CALLS = 200, RING = 1 << 14 };

int cuInit(unsigned int flags);
int cuCtxGetCurrent(void **context);
int (*bench_bare(void))(void **context);

static int (*bare)(void **context);

/* The wrapper that a tracer on clock_gettime would be: two vDSO clocks and a 64-byte record in a ring. */
struct clock_record {
    uint64_t start_ns, end_ns, function, thread, status, unused[3];
};
static struct clock_record ring[RING];
static uint64_t ring_head;

__attribute__((noinline)) static int clock_ring_call(void **context)
{
    const uint64_t start = ct_monotonic_ns();
    const int status = bare(context);
    struct clock_record *record = &ring[ring_head & (RING - 1)];
    *record = (struct clock_record){
        .start_ns = start, .end_ns = ct_monotonic_ns(), .function = 7, .thread = 1, .status = (uint64_t)status
    };
    __atomic_store_n(&ring_head, ring_head + 1, __ATOMIC_RELEASE);
    return status;
}

static volatile uint64_t sink;

__attribute__((noinline)) static int counters_call(void **context)
{
    const uint64_t start = ct_counter_read();
    const int status = bare(context);
    sink = ct_counter_read() - start;
    return status;
}

/* A wrapper that does nothing: what the two above pay for being wrappers. */
__attribute__((noinline)) static int wrapped_call(void **context)
{
    const int status = bare(context);
    sink = (uint64_t)status;
    return status;
}

static int traced_call(void **context)
{
    return cuCtxGetCurrent(context);
}
static int bare_call(void **context)
{
    return bare(context);
}

static const struct {
    const char *name;
    int (*call)(void **context);
} variants[] = {
    { "bare", bare_call },
    { "wrapper", wrapped_call },
    { "two_counter_reads", counters_call },
    { "clock_ring", clock_ring_call },
    { "cudatrace", traced_call },
};
enum { VARIANTS = sizeof(variants) / sizeof(variants[0]) };

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median_batch(int (*call)(void **context), double ns_per_tick)
{
    static double batch[BATCHES];
    void *context;
    for (int b = 0; b < BATCHES; b++) {
        const uint64_t start = ct_counter_read();
        for (int i = 0; i < CALLS; i++)
            call(&context);
        batch[b] = (double)(ct_counter_read() - start) * ns_per_tick / CALLS;
    }
    qsort(batch, BATCHES, sizeof(batch[0]), by_value);
    return batch[BATCHES / 2];
}

/* bench.py flushes the daemon and answers. */
static void wait_for_empty_ring(void)
{
    puts("flush");
    fflush(stdout);
    if (getchar() == EOF)
        exit(EXIT_FAILURE);
}

int main(void)
{
    bare = bench_bare();
    if (cuInit(0) != 0)
        return EXIT_FAILURE;
    const uint64_t ticks = ct_counter_read(), ns = ct_monotonic_ns();
    while (ct_monotonic_ns() - ns < 50000000)
        ;
    const double ns_per_tick = (double)(ct_monotonic_ns() - ns) / (double)(ct_counter_read() - ticks);
    for (int round = 0; round < ROUNDS; round++) {
        wait_for_empty_ring();
        for (int v = 0; v < VARIANTS; v++)
            printf("%s %d %.3f\n", variants[v].name, round, median_batch(variants[v].call, ns_per_tick));
    }
    return EXIT_SUCCESS;
}
