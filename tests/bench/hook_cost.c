/* Measures the cost of a call made in several ways, including through the hook. Each round measures every way
 * once, and each round starts with a different way. Prints `way round value` in nanoseconds (`way.p99 round
 * value` if a way has several figures). At the end, prints `each 0 N`, the number of calls made each way, and
 * `traced 0 N`, the number of calls through the hook.
 *
 * Before each round, the program prints `round` and waits for a line, so that its parent can flush the
 * daemon. */
#include "clock.h"
#include "null_driver.h"
#include "peers.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WAYS_MAX = 16, THREADS_MAX = 64, FIGURES_MAX = 4 };

/* Measures one way in one round, and fills in its figures. */
typedef void measure_function(bench_call *call, double *figures);

static struct {
    const char *mode, *subject;
    long threads, rounds, batches, calls, fill;
    struct bench_places places;
} options = {
    .mode = "batches", .subject = "instant", .threads = 1, .rounds = 25, .batches = 100, .calls = 200
};

static double ns_per_tick;
static int ways;
static const char *way_names[WAYS_MAX];
static bench_call *way_calls[WAYS_MAX];
static bench_call *traced;

static const struct mode *mode;
static double results[THREADS_MAX][FIGURES_MAX];
static pthread_barrier_t barrier;
static cpu_set_t allowed; /* processors at the process's start */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double *sorted(double *values, long count)
{
    qsort(values, (size_t)count, sizeof(values[0]), by_value);
    return values;
}

static double *values_new(long count)
{
    double *values = calloc((size_t)count, sizeof(*values));
    if (!values)
        abort();
    return values;
}

/* ---- the ways to measure ---- */

/* Makes `count` calls. instructions.py finds this function by its name, and counts its instructions. */
__attribute__((noinline)) static void make_calls(bench_call *call, long count)
{
    void *context;
    for (long i = 0; i < count; i++)
        call(&context);
}

/* Measures the cost within a stream of calls: the nanoseconds per call in the median batch. Interrupts affect
 * only a few batches, and therefore not the median. */
static void measure_batches(bench_call *call, double *figures)
{
    double *batch = values_new(options.batches);
    void *context;
    for (long b = 0; b < options.batches; b++) {
        const uint64_t start = ct_counter_read();
        for (long i = 0; i < options.calls; i++)
            call(&context);
        batch[b] = (double)(ct_counter_read() - start) * ns_per_tick / (double)options.calls;
    }
    figures[0] = sorted(batch, options.batches)[options.batches / 2];
    free(batch);
}

static double time_single(bench_call *call)
{
    void *context;
    const uint64_t start = ct_counter_read();
    call(&context);
    return (double)(ct_counter_read() - start) * ns_per_tick;
}

/* Measures the median and the slowest calls by timing each call with two reads of the counter. The figures of
 * every way include the cost of these reads. */
static void measure_singles(bench_call *call, double *figures)
{
    double *values = values_new(options.calls);
    for (long i = 0; i < options.calls; i++)
        values[i] = time_single(call);
    sorted(values, options.calls);
    figures[0] = values[options.calls / 2];
    figures[1] = values[options.calls * 99 / 100];
    figures[2] = values[options.calls * 999 / 1000];
    figures[3] = values[options.calls - 1];
    free(values);
}

/* Evicts everything from the caches by writing to every line of a buffer twice the size of the last-level
 * cache. */
static void evict_caches(void)
{
    static volatile uint8_t *buffer;
    static size_t bytes;
    if (!buffer) {
        const long last_level = sysconf(_SC_LEVEL3_CACHE_SIZE);
        bytes = 2 * (size_t)(last_level > 16L << 20 ? last_level : 16L << 20);
        buffer = malloc(bytes);
        if (!buffer)
            abort();
    }
    for (size_t at = 0; at < bytes; at += 64)
        buffer[at]++;
}

static void measure_cold(bench_call *call, double *figures)
{
    double *values = values_new(options.calls);
    for (long i = 0; i < options.calls; i++) {
        evict_caches();
        values[i] = time_single(call);
    }
    figures[0] = sorted(values, options.calls)[options.calls / 2];
    free(values);
}

static const struct mode {
    const char *name;
    measure_function *measure;
    int figures;
    const char *suffixes[FIGURES_MAX];
} modes[] = {
    { "batches", measure_batches, 1, { "" } },
    { "singles", measure_singles, 4, { ".p50", ".p99", ".p999", ".max" } },
    { "cold", measure_cold, 1, { "" } },
};

/* ---- rounds ---- */

static void wait_for_round(void)
{
    puts("round");
    fflush(stdout);
    if (getchar() == EOF)
        exit(EXIT_FAILURE);
    bench_peers_rewind();
    make_calls(traced, options.fill);
}

/* Prints each figure that was measured in this way, averaged over all threads. */
static void print_way(int way, long round)
{
    for (int f = 0; f < mode->figures; f++) {
        double sum = 0;
        for (long t = 0; t < options.threads; t++)
            sum += results[t][f];
        printf("%s%s %ld %.3f\n", way_names[way], mode->suffixes[f], round, sum / (double)options.threads);
    }
}

/* Binds each thread to a processor, beginning with the last one. If the scheduler moved a thread, the
 * thread's ring would still be in another processor's caches, and the figures would include a cost that the
 * tracer does not cause. */
static void stay_on_processor(long index)
{
    long skip = index % CPU_COUNT(&allowed);
    for (size_t cpu = CPU_SETSIZE; cpu-- > 0;) {
        if (!CPU_ISSET(cpu, &allowed) || skip-- > 0)
            continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
        return;
    }
}

static void run_rounds(long index)
{
    for (long round = 0; round < options.rounds; round++) {
        if (index == 0)
            wait_for_round();
        for (int i = 0; i < ways; i++) {
            const int way = (i + (int)(round % ways)) % ways;
            pthread_barrier_wait(&barrier);
            mode->measure(way_calls[way], results[index]);
            pthread_barrier_wait(&barrier);
            if (index == 0)
                print_way(way, round);
        }
    }
}

static void *run_thread(void *index)
{
    stay_on_processor((long)(intptr_t)index);
    run_rounds((long)(intptr_t)index);
    return NULL;
}

static void print_calls(void)
{
    const long of_a_round =
        strcmp(mode->name, "batches") == 0 ? options.batches * options.calls : options.calls;
    const long each = of_a_round * options.threads * options.rounds;
    long through_hook = options.fill * options.rounds;
    for (int w = 0; w < ways; w++)
        through_hook += way_calls[w] == traced ? each : 0;
    printf("each 0 %ld\ntraced 0 %ld\n", each, through_hook);
}

static void calibrate(void)
{
    const uint64_t ticks = ct_counter_read(), ns = ct_monotonic_ns();
    while (ct_monotonic_ns() - ns < 50000000)
        ;
    ns_per_tick = (double)(ct_monotonic_ns() - ns) / (double)(ct_counter_read() - ticks);
}

/* ---- options ---- */

static int usage(void)
{
    fputs(
        "Usage: hook_cost [-m batches|singles|cold|count] [-s instant|launch[:KERNELS]|copy|spin:NS]\n"
        "                 [-t THREADS] [-r ROUNDS] [-b BATCHES] [-c CALLS]\n"
        "                 [-f CALLS_THROUGH_THE_HOOK_BEFORE_A_ROUND] [-o FOLDER] [-l TRACEPOINTS.so] WAY...\n"
        "count makes CALLS calls by the first way and prints nothing: something else counts.\n",
        stderr);
    return 2;
}

static bool read_options(int argc, char **argv)
{
    int option;
    while ((option = getopt(argc, argv, "m:s:t:r:b:c:f:o:l:")) != -1) {
        long *number = option == 't'   ? &options.threads
                       : option == 'r' ? &options.rounds
                       : option == 'b' ? &options.batches
                       : option == 'c' ? &options.calls
                       : option == 'f' ? &options.fill
                                       : NULL;
        const char **text = option == 'm'   ? &options.mode
                            : option == 's' ? &options.subject
                            : option == 'o' ? &options.places.folder
                            : option == 'l' ? &options.places.tracepoints
                                            : NULL;
        if (number)
            *number = atol(optarg);
        else if (text)
            *text = optarg;
        else
            return false;
    }
    ways = argc - optind;
    return ways > 0 && ways <= WAYS_MAX && options.threads > 0 && options.threads <= THREADS_MAX &&
           options.rounds > 0 && options.batches > 0 && options.calls > 0;
}

int main(int argc, char **argv)
{
    if (!read_options(argc, argv))
        return usage();
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return EXIT_FAILURE;
    stay_on_processor(0);
    const bool count_only = strcmp(options.mode, "count") == 0;
    if (!count_only)
        calibrate(); /* not for `count`, because the number of instructions in this 50 ms spin varies */
    const struct bench_subject *subject = bench_subject(options.subject, ns_per_tick);
    if (!subject)
        return usage();
    traced = subject->traced;
    for (int w = 0; w < ways; w++) {
        way_names[w] = argv[optind + w];
        way_calls[w] = bench_peer(way_names[w], subject, &options.places);
        if (!way_calls[w])
            return EXIT_FAILURE;
    }
    if (count_only) {
        make_calls(way_calls[0], options.calls);
        return EXIT_SUCCESS;
    }
    for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
        if (strcmp(options.mode, modes[m].name) == 0)
            mode = &modes[m];
    }
    if (!mode || pthread_barrier_init(&barrier, NULL, (unsigned int)options.threads) != 0)
        return usage();
    pthread_t threads[THREADS_MAX];
    for (long t = 1; t < options.threads; t++) {
        if (pthread_create(&threads[t], NULL, run_thread, (void *)(intptr_t)t) != 0)
            abort();
    }
    run_rounds(0);
    for (long t = 1; t < options.threads; t++)
        pthread_join(threads[t], NULL);
    print_calls();
    return EXIT_SUCCESS;
}
