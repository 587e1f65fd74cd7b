/* The program that gpu_calls.py runs in every variant. No variant changes it. It measures the cost of a
 * driver call that returns at once, and of launching an empty kernel. It is linked with libcuda.so.1 and is
 * unaware of tracers.
 *
 *     gpu_calls cpu=N [image=FILE] [past=OFFSET] [pause=ask] [batches=N] [launch_batches=N]
 *
 * Short calls are timed in batches, and each batch yields a figure in nanoseconds per call. Launches are
 * timed one by one, with one read of the counter between consecutive launches. After each batch, the stream
 * is synchronised outside the timed part. If past=OFFSET gives the offset of cuLaunchKernel from the base of
 * libcuda.so.1, the program makes a third measurement. In this measurement, batches of ordinary calls, which
 * may pass through a tracer's wrapper, alternate with batches that call the driver's own function directly.
 *
 * The thread binds itself to the processor only after the set-up, so that threads which the driver or a
 * tracer has started by then are not bound as well. With pause=ask, the program now and then prints "pause"
 * and waits for a line, so that a ring can be emptied. Without pause=ask, the program instead sleeps for
 * about as long as it takes to empty a ring. Prints `device NAME`, then `calls FUNCTION p10 p50 p90 p99`,
 * `launch p10 p50 p90 p99` and `launch_turns THROUGH PAST` (medians). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "clock.h"
#include "cuda_min.h"

#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    BATCH_CALLS = 200,
    BATCHES_MAX = 100000,
    /* All calls between two pauses fit into half of a ring of the default size. A plain call takes one slot,
     * and a launch takes two. */
    CALL_BATCHES_A_PAUSE = 100,
    LAUNCH_BATCHES_A_PAUSE = 50,
    WARM_UP_BATCHES = 5,
    PAUSE_MS = 20,
};

/* PTX code for Turing and later GPUs, which the driver compiles for the machine's GPU. If nvcc is installed,
 * gpu_variants.py supplies machine code instead. */
static const char empty_ptx[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
                                ".visible .entry empty()\n{\n\tret;\n}\n";

typedef CUresult launch_function(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                 unsigned, CUstream, void **, void **);

static struct {
    long cpu, batches, launch_batches;
    const char *image;
    unsigned long past;
    bool ask;
} options = { .cpu = -1, .batches = 400, .launch_batches = 200 };

static double ns_per_tick;
static CUfunction empty;
static CUstream stream;

static void must(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    fprintf(stderr, "gpu_calls: %s returned %d\n", what, (int)result);
    exit(EXIT_FAILURE);
}
#define MUST(call) must((call), #call)

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    if (!memory) {
        fputs("gpu_calls: no memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    memset(memory, 0, bytes); /* touches all pages before the timing begins */
    return memory;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double percentile(const double *sorted, size_t count, double part)
{
    return sorted[(size_t)((double)(count - 1) * part + 0.5)];
}

static void print_percentiles(const char *what, double *values, size_t count)
{
    qsort(values, count, sizeof(values[0]), by_value);
    printf("%s %.2f %.2f %.2f %.2f\n", what, percentile(values, count, 0.10), percentile(values, count, 0.50),
           percentile(values, count, 0.90), percentile(values, count, 0.99));
}

static void take_pause(void)
{
    if (!options.ask) {
        nanosleep(&(struct timespec){ .tv_nsec = PAUSE_MS * 1000000L }, NULL);
        return;
    }
    puts("pause");
    fflush(stdout);
    for (int c; (c = getchar()) != '\n';) {
        if (c == EOF)
            exit(EXIT_FAILURE);
    }
}

/* ---- calls that return at once ---- */

static double batch_of_contexts(void)
{
    CUcontext context;
    const uint64_t start = ct_counter_read();
    for (int i = 0; i < BATCH_CALLS; i++)
        cuCtxGetCurrent(&context);
    return (double)(ct_counter_read() - start) * ns_per_tick / BATCH_CALLS;
}

static double batch_of_devices(void)
{
    CUdevice device;
    const uint64_t start = ct_counter_read();
    for (int i = 0; i < BATCH_CALLS; i++)
        cuCtxGetDevice(&device);
    return (double)(ct_counter_read() - start) * ns_per_tick / BATCH_CALLS;
}

static void measure_calls(const char *name, double (*batch)(void))
{
    double *values = allocate((size_t)options.batches * sizeof(values[0]));
    char what[64];
    for (long b = 0; b < options.batches; b++) {
        if (b % CALL_BATCHES_A_PAUSE == 0) {
            take_pause();
            for (int i = 0; i < WARM_UP_BATCHES; i++)
                batch();
        }
        values[b] = batch();
    }
    snprintf(what, sizeof(what), "calls %s", name);
    print_percentiles(what, values, (size_t)options.batches);
    free(values);
}

/* ---- launches ---- */

/* values: BATCH_CALLS durations in ns. */
static void batch_of_launches(launch_function *launch, double *values)
{
    static uint64_t ticks[BATCH_CALLS + 1];
    ticks[0] = ct_counter_read();
    for (int i = 1; i <= BATCH_CALLS; i++) {
        const CUresult result = launch(empty, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
        ticks[i] = ct_counter_read();
        if (result != CUDA_SUCCESS)
            must(result, "cuLaunchKernel");
    }
    MUST(cuStreamSynchronize(stream));
    for (int i = 0; i < BATCH_CALLS; i++)
        values[i] = (double)(ticks[i + 1] - ticks[i]) * ns_per_tick;
}

static void pause_before(long batch, double *scratch)
{
    if (batch % LAUNCH_BATCHES_A_PAUSE != 0)
        return;
    take_pause();
    for (int i = 0; i < WARM_UP_BATCHES; i++)
        batch_of_launches(cuLaunchKernel, scratch);
}

static void measure_launches(void)
{
    const size_t count = (size_t)options.launch_batches * BATCH_CALLS;
    double *values = allocate(count * sizeof(values[0]));
    for (long b = 0; b < options.launch_batches; b++) {
        pause_before(b, values + b * BATCH_CALLS);
        batch_of_launches(cuLaunchKernel, values + b * BATCH_CALLS);
    }
    print_percentiles("launch", values, count);
    free(values);
}

/* Returns the driver's own cuLaunchKernel(), which cannot be looked up by name if a tracer interposes it. */
static launch_function *driver_launch(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    struct link_map *map = NULL;
    if (!driver || dlinfo(driver, RTLD_DI_LINKMAP, &map) != 0)
        return NULL;
    return (launch_function *)(map->l_addr + options.past);
}

static void measure_launches_in_turns(void)
{
    launch_function *const past = driver_launch();
    if (!past)
        return;
    const size_t count = (size_t)options.launch_batches * BATCH_CALLS;
    double *through_values = allocate(count * sizeof(double)),
           *past_values = allocate(count * sizeof(double));
    for (long b = 0; b < options.launch_batches; b++) {
        double *const through_batch = through_values + b * BATCH_CALLS, *const past_batch =
                                                                            past_values + b * BATCH_CALLS;
        pause_before(b, through_batch);
        if (b % 2 == 0)
            batch_of_launches(past, past_batch);
        batch_of_launches(cuLaunchKernel, through_batch);
        if (b % 2 != 0)
            batch_of_launches(past, past_batch);
    }
    qsort(through_values, count, sizeof(double), by_value);
    qsort(past_values, count, sizeof(double), by_value);
    printf("launch_turns %.2f %.2f\n", percentile(through_values, count, 0.5),
           percentile(past_values, count, 0.5));
    free(through_values);
    free(past_values);
}

/* ---- setting up ---- */

static void *read_image(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    const size_t bytes = (size_t)ftell(file);
    char *image = allocate(bytes + 1);
    rewind(file);
    if (fread(image, 1, bytes, file) != bytes) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    fclose(file);
    return image;
}

static void set_up_driver(void)
{
    CUdevice device;
    CUcontext context;
    CUmodule module;
    char name[128] = "";
    int version = 0;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    if (cuDeviceGetName(name, sizeof(name), device) != CUDA_SUCCESS)
        strcpy(name, "unknown"); /* a simulated driver has no device name */
    MUST(cuDriverGetVersion(&version));
    printf("device %s, CUDA %d.%d\n", name, version / 1000, version % 1000 / 10);
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    void *image = options.image ? read_image(options.image) : NULL;
    MUST(cuModuleLoadData(&module, image ? image : (const void *)empty_ptx));
    free(image);
    MUST(cuModuleGetFunction(&empty, module, "empty"));
}

static void read_options(int count, char **arguments)
{
    for (int i = 1; i < count; i++) {
        const char *equals = strchr(arguments[i], '=');
        const char *value = equals ? equals + 1 : "";
        const size_t length = equals ? (size_t)(equals - arguments[i]) : strlen(arguments[i]);
#define IS(name) (length == strlen(name) && strncmp(arguments[i], name, length) == 0)
        if (IS("cpu"))
            options.cpu = strtol(value, NULL, 10);
        else if (IS("batches"))
            options.batches = strtol(value, NULL, 10);
        else if (IS("launch_batches"))
            options.launch_batches = strtol(value, NULL, 10);
        else if (IS("image"))
            options.image = value;
        else if (IS("past"))
            options.past = strtoul(value, NULL, 0);
        else if (IS("pause"))
            options.ask = strcmp(value, "ask") == 0;
        else
            options.batches = -1;
#undef IS
    }
    if (options.cpu < 0 || options.batches < 1 || options.batches > BATCHES_MAX ||
        options.launch_batches < 1 || options.launch_batches > BATCHES_MAX) {
        fputs("usage: gpu_calls cpu=N [image=FILE] [past=OFFSET] [pause=ask] [batches=N] "
              "[launch_batches=N]\n",
              stderr);
        exit(2);
    }
}

static void bind_to_processor(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)options.cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set) != 0) {
        perror("gpu_calls: sched_setaffinity");
        exit(EXIT_FAILURE);
    }
}

static void find_tick(void)
{
    const uint64_t ticks = ct_counter_read(), ns = ct_monotonic_ns();
    while (ct_monotonic_ns() - ns < 50000000)
        ;
    ns_per_tick = (double)(ct_monotonic_ns() - ns) / (double)(ct_counter_read() - ticks);
}

int main(int count, char **arguments)
{
    double warm_up[BATCH_CALLS];
    read_options(count, arguments);
    set_up_driver();
    for (int i = 0; i < WARM_UP_BATCHES; i++)
        batch_of_launches(cuLaunchKernel, warm_up);
    bind_to_processor();
    find_tick();
    measure_calls("cuCtxGetCurrent", batch_of_contexts);
    measure_calls("cuCtxGetDevice", batch_of_devices);
    measure_launches();
    if (options.past)
        measure_launches_in_turns();
    return EXIT_SUCCESS;
}
