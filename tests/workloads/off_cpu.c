/* Touches new pages inside one driver call, sleeps inside another, and does nothing inside a third. Prints
 * what the kernel counted for this thread during the first two calls: page faults, and context switches that
 * put the thread to sleep. To run code inside a driver call, the program passes the code as a callback to
 * cuOccupancyMaxPotentialBlockSize. After the callback, cuOccupancyMaxPotentialBlockSize fails, because its
 * function argument is NULL. */
#include "workload.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

typedef size_t shared_of(int block_size);
CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function, shared_of *shared_of,
                                          size_t shared_bytes, int limit);

static long long pages = 100, sleep_ms = 30, nest, awaits;
static shared_of *innermost;
static long long left;

static void call(shared_of *back)
{
    int grid, block;
    ENSURE(cuOccupancyMaxPotentialBlockSize(&grid, &block, NULL, back, 0, 0) != CUDA_SUCCESS);
}

static struct rusage usage(void)
{
    struct rusage used;
    ENSURE(getrusage(RUSAGE_THREAD, &used) == 0);
    return used;
}

static size_t touch(int block_size)
{
    (void)block_size;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (size_t)pages * page;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ENSURE(memory != MAP_FAILED);
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    const struct rusage before = usage();
    for (size_t at = 0; at < bytes; at += page)
        memory[at] = 1;
    printf("%ld page faults\n", usage().ru_minflt - before.ru_minflt);
    munmap(memory, bytes);
    return 0;
}

static size_t wait_a_while(int block_size)
{
    (void)block_size;
    const struct rusage before = usage();
    nanosleep(&(struct timespec){ .tv_nsec = sleep_ms * 1000000 }, NULL);
    printf("%ld sleeps\n", usage().ru_nvcsw - before.ru_nvcsw);
    return 0;
}

static size_t go_deeper(int block_size)
{
    (void)block_size;
    call(--left > 0 ? go_deeper : innermost);
    return 0;
}

static size_t nothing(int block_size)
{
    (void)block_size;
    return 0;
}

static const struct option_row options[] = {
    NUMBER_OPTION("pages", "pages to touch", &pages, 1, 1 << 20),
    NUMBER_OPTION("sleep", "milliseconds to sleep", &sleep_ms, 1, 999),
    NUMBER_OPTION("nest", "calls around each of these calls", &nest, 0, 14),
    NUMBER_OPTION("await", "lines of input to read before the second round", &awaits, 0, 1),
    { .name = NULL },
};

static void await_line(void)
{
    puts("ready");
    fflush(stdout);
    ENSURE(getchar() == '\n');
}

static void act(shared_of *what)
{
    innermost = what;
    left = nest;
    call(nest ? go_deeper : innermost);
}

int main(int argc, char **argv)
{
    options_read(argc, argv, "Touch pages, sleep, and do nothing inside driver calls.", options);
    driver_open(VIA_LINKED);
    driver_start();
    shared_of *const acts[] = { touch, wait_a_while, nothing };
    for (int round = 0; round < 2; round++) { /* the first round also maps the code itself */
        if (round == 1 && awaits) {
            await_line();
            act(nothing); /* its return touches the page that the kernel maps for probes of returns */
        }
        for (int i = 0; i < 3; i++)
            act(acts[i]);
    }
    return 0;
}
