/* nested.c: makes calls within calls, nested deeper than a probe can count, and leaves some calls by
 * longjmp(). To run code inside a driver call, the program passes the code as a callback to
 * cuOccupancyMaxPotentialBlockSize. After the callback, cuOccupancyMaxPotentialBlockSize fails, because its
 * function argument is NULL. */
#include "workload.h"

#include <setjmp.h>

typedef size_t shared_of(int block_size);
CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function, shared_of *shared_of,
                                          size_t shared_bytes, int limit);

static long long times = 10, depth = 20;
static int left_to_go;
static jmp_buf out;

static void call(shared_of *back)
{
    int grid, block;
    ENSURE(cuOccupancyMaxPotentialBlockSize(&grid, &block, NULL, back, 0, 0) != CUDA_SUCCESS);
}

static size_t nest(int block_size)
{
    (void)block_size;
    if (--left_to_go > 0)
        call(nest);
    return 0;
}

static size_t leave(int block_size)
{
    (void)block_size;
    if (--left_to_go > 0)
        call(leave);
    longjmp(out, 1);
}

static size_t stay(int block_size)
{
    (void)block_size;
    return 0;
}

/* Makes two calls at the same stack position. The first call is left by longjmp(), and the second returns. */
static void leave_and_stay(int calls)
{
    for (volatile int i = 0; i < 2; i++) {
        left_to_go = calls;
        if (setjmp(out) == 0)
            call(i == 0 ? leave : stay);
    }
}

static const struct option_row options[] = {
    NUMBER_OPTION("times", "how often", &times, 0, 1 << 20),
    NUMBER_OPTION("depth", "calls within each other", &depth, 1, 1000),
    { .name = NULL },
};

int main(int argc, char **argv)
{
    options_read(argc, argv, "Make calls within calls, and leave some by longjmp.", options);
    driver_open(VIA_LINKED);
    driver_start();
    for (long long i = 0; i < times; i++) {
        left_to_go = (int)depth;
        call(nest);
        leave_and_stay(1);
        leave_and_stay((int)depth);
    }
    return 0;
}
