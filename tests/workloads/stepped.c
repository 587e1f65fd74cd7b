/* stepped.c: a program that is stopped in the middle of the allocator when `attach` attaches to it. In each
 * round, the program prints the round's number, stops itself with SIGSTOP, allocates and frees small and
 * large blocks, and makes one call. The test then single-steps the program to each instruction of the
 * allocator. The handler for SIGUSR1 prints a line and stops the program. The handler for SIGUSR2 jumps to
 * the end of the round. After a SIGTERM, the program finishes the current round and exits. */
#include "workload.h"

#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { ERRNO_BEFORE = 77, SMALL = 100, LARGE = 1 << 20 };

static volatile sig_atomic_t ended, rounds;
static sigjmp_buf round_end;

static void on_term(int number)
{
    (void)number;
    ended = 1;
}

static void on_user(int number)
{
    static const char line[] = "handled\n";
    (void)number;
    ENSURE(write(STDOUT_FILENO, line, sizeof(line) - 1) == sizeof(line) - 1);
    ENSURE(raise(SIGSTOP) == 0);
}

static void on_jump(int number)
{
    (void)number;
    siglongjmp(round_end, 1);
}

/* Executes the same instructions in every round. */
static void allocate(int round)
{
    char *block = malloc(SMALL), *large = malloc(LARGE);
    ENSURE(block && large);
    block[0] = block[SMALL - 1] = large[LARGE - 1] = (char)round;
    char *longer = realloc(block, (size_t)4 * SMALL);
    ENSURE(longer && longer[0] == (char)round && longer[SMALL - 1] == (char)round &&
           large[LARGE - 1] == (char)round);
    free(large);
    free(longer);
}

int main(int argc, char **argv)
{
    static const struct option_row none[] = { { 0 } };
    int version = 0;
    options_read(argc, argv, "Stops itself, allocates, and makes a call, again and again, until SIGTERM.",
                 none);
    driver_open(VIA_LINKED);
    OK(cu.Init(0));
    /* Large blocks are mapped separately each time. Blocks are not filled, because filling would take a step
     * for each byte. */
    ENSURE(mallopt(M_MMAP_THRESHOLD, LARGE) == 1 && mallopt(M_PERTURB, 0) == 1);
    signal(SIGTERM, on_term);
    signal(SIGUSR1, on_user);
    signal(SIGUSR2, on_jump);
    for (; !ended; rounds++) {
        if (sigsetjmp(round_end, 1) != 0)
            continue;
        printf("round %d\n", rounds);
        fflush(stdout);
        ENSURE(raise(SIGSTOP) == 0);
        errno = ERRNO_BEFORE;
        allocate(rounds);
        ENSURE(errno == ERRNO_BEFORE);
        OK(cu.DriverGetVersion(&version));
        ENSURE(errno == ERRNO_BEFORE && version > 0);
    }
    printf("rounds %d\n", rounds);
    return 0;
}
