/* scripted.c: a job whose behaviour is known. The job loads, prepares, executes and retrieves. The job is
 * idle in the middle of executing, leaks memory, and makes calls that fail. The program prints its actions,
 * and the time when each phase begins. */
#include "workload.h"

#include <time.h>

static long long launches = 2000, idle_ms = 60, leaks = 3, failures = 5, pause_us;

static const struct option_row options[] = {
    NUMBER_OPTION("launches", "kernels", &launches, 2, 1ll << 40),
    NUMBER_OPTION("idle-ms", "milliseconds without a call, in the middle of the kernels", &idle_ms, 0, 60000),
    NUMBER_OPTION("leaks", "allocations of 1 MiB that are not freed", &leaks, 0, 1000),
    NUMBER_OPTION("failures", "allocations that ask for too much", &failures, 0, 1000),
    NUMBER_OPTION("pause-us", "microseconds between kernels: a straggler", &pause_us, 0, 1000000),
    { .name = NULL },
};

enum { MODULES = 3, BUFFERS = 8, BUFFER_BYTES = 1 << 20, BATCH_BYTES = 4096, BATCH = 100 };
static uint8_t host[BUFFER_BYTES];

static long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void begin(const char *phase)
{
    printf("phase %s %lld\n", phase, now_ns());
}

int main(int argc, char **argv)
{
    options_read(argc, argv, "Run a job in four phases, and say what a report has to find.", options);
    driver_open(VIA_LINKED);

    begin("load");
    driver_start();
    CUmodule module[MODULES];
    CUfunction fill;
    for (int i = 0; i < MODULES; i++)
        OK(cu.ModuleLoadData(&module[i], "image"));
    OK(cu.ModuleGetFunction(&fill, module[0], "fill_u32"));
    CUstream stream;
    OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));

    begin("preparation");
    CUdeviceptr buffer[BUFFERS], leak, refused;
    for (int i = 0; i < BUFFERS; i++) {
        OK(cu.MemAlloc(&buffer[i], BUFFER_BYTES));
        OK(cu.MemcpyHtoD(buffer[i], host, BUFFER_BYTES));
    }

    begin("execution");
    for (long long i = 0; i < launches; i++) {
        if (i == launches / 2) {
            const long long from_ns = now_ns();
            pause_ns(idle_ms * 1000000);
            printf("idle %lld %lld\n", from_ns, now_ns());
        }
        if (i % BATCH == 0)
            OK(cu.MemcpyHtoDAsync(buffer[0], host, BATCH_BYTES, stream));
        OK(launch_fill(fill, buffer[i % BUFFERS], (uint32_t)i, 256, stream));
        if (i % BATCH == BATCH - 1)
            OK(cu.StreamSynchronize(stream));
        if (pause_us > 0)
            pause_ns(pause_us * 1000);
    }
    for (long long i = 0; i < leaks; i++)
        OK(cu.MemAlloc(&leak, BUFFER_BYTES));
    for (long long i = 0; i < failures; i++)
        EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cu.MemAlloc(&refused, (size_t)1 << 60));

    begin("retrieval");
    for (int i = 0; i < BUFFERS; i++)
        OK(cu.MemcpyDtoH(host, buffer[i], BUFFER_BYTES));
    for (int i = 0; i < BUFFERS; i++)
        OK(cu.MemFree(buffer[i]));
    begin("end");
    return 0;
}
