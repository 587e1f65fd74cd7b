/* forks.c: forks processes without exec, before and after the parent's first call. The real driver works in
 * children that were forked before the parent's first call, and rejects every call in children that were
 * forked later. With SIMCUDA_FORK=works, the simulated driver works in all children. Children end by
 * returning from main(), by exit() and by _exit(). */
#include "workload.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static long long children = 3, calls = 100, via = VIA_LINKED;

static const struct option_row options[] = {
    NUMBER_OPTION("children", "children before the parent's first call, and after", &children, 0, 1000),
    NUMBER_OPTION("calls", "calls of each process after its setup", &calls, 0, 1 << 30),
    VIA_OPTION(&via),
    { .name = NULL },
};

static CUdeviceptr buffer;

static void prepare(void)
{
    driver_start();
    OK(cu.MemAlloc(&buffer, 4096));
}

/* Makes exactly `calls` calls. */
static void make_calls(void)
{
    unsigned char written[256], read[256];
    for (long long i = 0; i < calls; i++) {
        if (i % 2 == 0) {
            memset(written, (int)i, sizeof written);
            OK(cu.MemcpyHtoD(buffer, written, sizeof written));
        } else {
            OK(cu.MemcpyDtoH(read, buffer, sizeof read));
            ENSURE(!memcmp(read, written, sizeof read));
        }
    }
}

static void be_refused(void)
{
    CUcontext context;
    for (long long i = 0; i < calls; i++)
        EXPECT(CUDA_ERROR_NOT_INITIALIZED, cu.CtxGetCurrent(&context));
}

/* Makes a child's calls. Then, depending on the child's number, ends the child, or returns the exit status
 * that main() must return. */
static int child(long long number, bool is_late)
{
    CUcontext context;
    if (!is_late)
        prepare();
    const bool works = cu.CtxGetCurrent(&context) == CUDA_SUCCESS;
    if (works)
        make_calls();
    else
        be_refused();
    if (number % 3 == 1)
        exit(0);
    if (number % 3 == 2)
        _exit(0);
    return 0;
}

static int wait_for_all(void)
{
    int failed = 0;
    for (int status; wait(&status) > 0;)
        failed += status != 0;
    return failed;
}

int main(int argc, char **argv)
{
    options_read(argc, argv, "Make driver calls in processes forked without exec.", options);
    driver_open((enum via)via);
    for (long long i = 0; i < children; i++)
        if (fork() == 0)
            return child(i, false);
    int failed = wait_for_all();
    prepare();
    make_calls();
    for (long long i = 0; i < children; i++)
        if (fork() == 0)
            return child(i, true);
    make_calls();
    failed += wait_for_all();
    printf("forks: early=%lld late=%lld failed=%d %s\n", children, children, failed,
           failed ? "FAILED" : "ok");
    return failed > 0;
}
