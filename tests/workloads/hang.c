/* hang.c: makes calls, and then one call that does not return. With SIMCUDA_BLOCK=cuCtxSynchronize, the
 * simulated driver blocks cuCtxSynchronize, and reports this through SIMCUDA_BLOCK_NOTIFY. Without these
 * variables, the program simply exits. */
#include "workload.h"

static long long calls = 1000, via = VIA_LINKED;

static const struct option_row options[] = {
    NUMBER_OPTION("calls", "calls before the one that hangs", &calls, 0, 1ll << 40),
    VIA_OPTION(&via),
    { .name = NULL },
};

int main(int argc, char **argv)
{
    CUcontext current;
    options_read(argc, argv, "Make driver calls, then call cuCtxSynchronize, which may never return.",
                 options);
    driver_open((enum via)via);
    const CUcontext context = driver_start();
    for (long long i = 0; i < calls; i++) {
        OK(cu.CtxGetCurrent(&current));
        ENSURE(current == context);
    }
    OK(cu.CtxSynchronize());
    printf("hang: calls=%lld returned\n", calls);
    return 0;
}
