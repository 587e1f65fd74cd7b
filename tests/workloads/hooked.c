/* hooked.c: calls the functions of hookable.c in and around driver calls. To run code inside a driver call,
 * the program passes the code as a callback to cuOccupancyMaxPotentialBlockSize. After the callback,
 * cuOccupancyMaxPotentialBlockSize fails, because its function argument is NULL. */
#include "hookable.h"
#include "workload.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <string.h>

typedef size_t shared_of(int block_size);
CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function, shared_of *shared_of,
                                          size_t shared_bytes, int limit);

static long long times = 10;
static jmp_buf out;

static void call(shared_of *back)
{
    int grid, block;
    ENSURE(cuOccupancyMaxPotentialBlockSize(&grid, &block, NULL, back, 0, 0) != CUDA_SUCCESS);
}

static void put(int number, const char *name)
{
    const struct box box = { .tag = 0xb0b0b0b0,
                             .level = (int16_t)-number,
                             .bytes = UINT64_C(0xf000000000000000) + (uint64_t)number };
    ENSURE(hookable_put(&box, name, -number, 3, 4, 5, -6 * number, 7 * number) == number);
}

static size_t put_inside(int block_size)
{
    (void)block_size;
    put(1, "inside");
    return 0;
}

static size_t nothing(int block_size)
{
    (void)block_size;
    return 0;
}

static void call_inside(void)
{
    call(nothing);
}

static void leave(void)
{
    longjmp(out, 1);
}

static const struct option_row options[] = {
    NUMBER_OPTION("times", "calls of hookable_put()", &times, 0, 1 << 20),
    { .name = NULL },
};

int main(int argc, char **argv)
{
    static char long_name[1000];
    const char *text;
    options_read(argc, argv, "Call functions of a library in and around driver calls.", options);
    driver_open(VIA_LINKED);
    driver_start();
    call(nothing);
    for (int i = 0; i < times; i++) {
        char name[32];
        snprintf(name, sizeof(name), "number %d", i);
        put(i, name);
    }
    call(put_inside);
    if (setjmp(out) == 0)
        hookable_around(leave);
    hookable_around(call_inside);
    memset(long_name, 'n', sizeof(long_name) - 1);
    put(2, long_name);
    put(3, "a \"quote\", and \xff");
    ENSURE(hookable_put(NULL, NULL, 0, 0, 0, 0, 0, 0) == 0);
    ENSURE(dlsym(RTLD_NEXT, "hookable_put"));
    for (int i = 0; i < 3; i++)
        ENSURE(hookable_name(&text, i) == text);
    return 0;
}
