/* bottlenecks.c: a job with a known bottleneck. Options control the time until the job's first kernel, the
 * work between two kernels, whether the job waits for kernels, and how it ends. */
#include "workload.h"

#include <pthread.h>
#include <semaphore.h>

static long long start_ms, launches = 1000, turns, pause_us, sync_every, copies, end_ms, hang;

static const struct option_row options[] = {
    NUMBER_OPTION("start-ms", "milliseconds before the first kernel, outside of the driver", &start_ms, 0,
                  60000),
    NUMBER_OPTION("launches", "kernels", &launches, 0, 1ll << 40),
    NUMBER_OPTION("turns",
                  "kernels that a thread launches while the other one waits for its turn; 0: one thread",
                  &turns, 0, 1ll << 40),
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

static struct job {
    CUcontext context;
    CUfunction fill;
    CUstream stream;
    CUdeviceptr buffer;
} job;
static sem_t turn_of[2];

static void launch_one(long long i)
{
    OK(launch_fill(job.fill, job.buffer, (uint32_t)i, 256, job.stream));
    if (sync_every > 0 && i % sync_every == sync_every - 1)
        OK(cu.StreamSynchronize(job.stream));
    if (pause_us > 0)
        pause_ns(pause_us * 1000);
}

/* Launches kernels in turn with another thread, like the threads of a forward and a backward pass. */
static void *take_turns(void *which)
{
    const int mine = which ? 1 : 0;
    OK(cu.CtxSetCurrent(job.context));
    for (long long from = mine * turns; from < launches; from += 2 * turns) {
        ENSURE(sem_wait(&turn_of[mine]) == 0);
        for (long long i = from; i < from + turns && i < launches; i++)
            launch_one(i);
        ENSURE(sem_post(&turn_of[!mine]) == 0);
    }
    return NULL;
}

static void launch_in_turns(void)
{
    pthread_t other;
    ENSURE(sem_init(&turn_of[0], 0, 1) == 0 && sem_init(&turn_of[1], 0, 0) == 0);
    ENSURE(pthread_create(&other, NULL, take_turns, turn_of) == 0);
    take_turns(NULL);
    ENSURE(pthread_join(other, NULL) == 0);
}

int main(int argc, char **argv)
{
    static uint8_t host[BYTES];
    options_read(argc, argv, "Run a job that is bound by what the options say.", options);
    driver_open(VIA_LINKED);
    job.context = driver_start();
    CUmodule module;
    OK(cu.ModuleLoadData(&module, "image"));
    OK(cu.ModuleGetFunction(&job.fill, module, "fill_u32"));
    OK(cu.StreamCreate(&job.stream, CU_STREAM_NON_BLOCKING));
    OK(cu.MemAlloc(&job.buffer, BYTES));
    if (launches > 0)
        OK(cu.MemcpyHtoD(job.buffer, host, BYTES));
    pause_ns(start_ms * 1000000);
    if (turns > 0)
        launch_in_turns();
    for (long long i = 0; turns == 0 && i < launches; i++)
        launch_one(i);
    if (launches > 0)
        OK(cu.StreamSynchronize(job.stream));
    for (long long i = 0; i < copies; i++)
        OK(cu.MemcpyDtoH(host, job.buffer, BYTES));
    if (hang)
        OK(cu.CtxSynchronize());
    pause_ns(end_ms * 1000000);
    return 0;
}
