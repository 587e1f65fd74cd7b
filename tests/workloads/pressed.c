/* pressed.c: makes known numbers of low-priority and important calls, mixed with each other. After its first
 * call, the program waits for a line on standard input before it makes further calls. The program reports
 * when it has made all calls, and makes all calls again for each further line. */
#include "nvtx_client.h"
#include "workload.h"

static long long steps = 40, plain = 100;

static const struct option_row options[] = {
    NUMBER_OPTION("steps", "times that all is done", &steps, 1, 1000000),
    NUMBER_OPTION("plain", "calls that say little, in each step", &plain, 1, 1000000),
    { .name = NULL },
};

enum { BYTES = 4096 };
static uint8_t host[BYTES];

static void make_steps(CUcontext context, CUfunction fill, CUdeviceptr buffer)
{
    CUcontext current;
    CUdevice device;
    CUdeviceptr other;
    for (long long step = 0; step < steps; step++) {
        for (long long i = 0; i < plain; i++)
            OK(cu.CtxGetCurrent(&current));
        EXPECT(0, nvtx.RangePushA("step"));
        OK(launch_fill(fill, buffer, (uint32_t)step, 256, NULL));
        OK(cu.MemcpyHtoD(buffer, host, BYTES));
        OK(cu.MemAlloc(&other, BYTES));
        OK(cu.MemFree(other));
        OK(cu.CtxSynchronize());
        EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cu.MemAlloc(&other, (size_t)1 << 60));
        OK(cu.CtxGetDevice(&device, context)); /* the test makes this call take a long time */
        EXPECT(0, nvtx.RangePop());
    }
}

int main(int argc, char **argv)
{
    options_read(argc, argv, "Make calls that say little, and some that say more.", options);
    driver_open(VIA_LINKED);
    CUcontext context = driver_start();
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
    ENSURE(library && nvtx_load(library));
    CUmodule module;
    CUfunction fill;
    OK(cu.ModuleLoadData(&module, "image"));
    OK(cu.ModuleGetFunction(&fill, module, "fill_u32"));
    CUdeviceptr buffer;
    OK(cu.MemAlloc(&buffer, BYTES));
    OK(launch_fill(fill, buffer, 0, 256, NULL));
    puts("ready");
    fflush(stdout);
    ENSURE(getchar() == '\n');
    do {
        make_steps(context, fill, buffer);
        puts("done");
        fflush(stdout);
    } while (getchar() == '\n');
    return 0;
}
