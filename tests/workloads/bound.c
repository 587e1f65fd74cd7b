/*
 * bound.c: a job of which it is known what bounds it: how long it takes to its first kernel, what it does
 * between two, whether it waits for them, and how it ends.
 */
#include "workload.h"

#include <time.h>

static long long start_ms, launches = 1000, pause_us, sync_every, copies, end_ms, hang;

static const struct option_row options[] = {
    NUMBER_OPTION("start-ms", "milliseconds before the first kernel, outside of the driver", &start_ms, 0,
                  60000),
    NUMBER_OPTION("launches", "kernels", &launches, 0, 1ll << 40),
    NUMBER_OPTION("pause-us", "microseconds between kernels, outside of the driver", &pause_us, 0, 1000000),
    NUMBER_OPTION("sync-every", "kernels after which the stream is waited for; 0: at the end alone",
                  &sync_every, 0, 1ll << 40),
    NUMBER_OPTION("copies", "copies to the host behind the kernels", &copies, 0, 1000000),
    NUMBER_OPTION("end-ms", "milliseconds behind all of it", &end_ms, 0, 60000),
    NUMBER_OPTION("hang", "1: at last a cuCtxSynchronize, in which the simulated driver may block", &hang, 0,
                  1),
    { .name = NULL },
};

enum { BYTES = 4096 };

static void pause_ns(long long ns)
{
    const struct timespec time = { ns / 1000000000, ns % 1000000000 };
    nanosleep(&time, NULL);
}

int main(int argc, char **argv)
{
    static uint8_t host[BYTES];
    options_read(argc, argv, "Run a job that is bound by what the options say.", options);
    driver_open(VIA_LINKED);
    driver_start();
    CUmodule module;
    CUfunction fill;
    CUstream stream;
    CUdeviceptr buffer;
    OK(cu.ModuleLoadData(&module, "image"));
    OK(cu.ModuleGetFunction(&fill, module, "fill_u32"));
    OK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cu.MemAlloc(&buffer, BYTES));
    if (launches > 0)
        OK(cu.MemcpyHtoD(buffer, host, BYTES));
    pause_ns(start_ms * 1000000);
    for (long long i = 0; i < launches; i++) {
        OK(launch_fill(fill, buffer, (uint32_t)i, 256, stream));
        if (sync_every > 0 && i % sync_every == sync_every - 1)
            OK(cu.StreamSynchronize(stream));
        if (pause_us > 0)
            pause_ns(pause_us * 1000);
    }
    if (launches > 0)
        OK(cu.StreamSynchronize(stream));
    for (long long i = 0; i < copies; i++)
        OK(cu.MemcpyDtoH(host, buffer, BYTES));
    if (hang)
        OK(cu.CtxSynchronize());
    pause_ns(end_ms * 1000000);
    return 0;
}
