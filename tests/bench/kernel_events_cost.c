/* Measures the time that a probe with kernel events adds to work that it does not record. This work consists
 * of page faults and thread switches outside of calls, driver calls, and other system calls. Makes a driver
 * call, so that a hook has a segment, and prints `ready`. Each line read from standard input names a kind of
 * work. The program runs a round of it, and prints the nanoseconds per operation in the round's median batch.
 * Programs with and without the hook take turns. */
#include "batches.h"
#include "clock.h"
#include "null_driver.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BATCHES = 600, OPERATIONS = 32 };
enum { PAGE_BYTES = 4096 };

/* ---- work ---- */

static uint8_t *pages;

static void fault(void)
{
    for (size_t i = 0; i < OPERATIONS; i++)
        ((volatile uint8_t *)pages)[i * PAGE_BYTES] = 1;
}

static void drop_pages(void)
{
    madvise(pages, (size_t)OPERATIONS * PAGE_BYTES, MADV_DONTNEED);
}

/* The futex word names the thread whose turn it is: 0 is the main thread, 1 is the partner. */
static _Atomic uint32_t turn;

static void wait_for_turn(uint32_t own)
{
    for (uint32_t now; (now = atomic_load(&turn)) != own;)
        syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
}

static void pass_turn(uint32_t to)
{
    atomic_store(&turn, to);
    syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *be_partner(void *unused)
{
    for (;;) {
        wait_for_turn(1);
        pass_turn(0);
    }
    return unused;
}

static void switch_threads(void)
{
    for (int i = 0; i < OPERATIONS / 2; i++) {
        pass_turn(1);
        wait_for_turn(0);
    }
}

static void call_driver(void)
{
    void *context;
    for (int i = 0; i < OPERATIONS; i++)
        cuCtxGetCurrent(&context);
}

static void call_kernel(void)
{
    for (int i = 0; i < OPERATIONS; i++)
        syscall(SYS_getppid);
}

static void nothing(void) {}

static const struct {
    const char *name;
    void (*prepare)(void);
    void (*run)(void);
} works[] = {
    { "fault", drop_pages, fault },
    { "switch", nothing, switch_threads },
    { "driver_call", nothing, call_driver },
    { "system_call", nothing, call_kernel },
};

static double round_of(void (*prepare)(void), void (*run)(void))
{
    uint64_t batch_ns[BATCHES];
    for (int b = 0; b < BATCHES; b++) {
        prepare();
        const uint64_t start_ns = ct_monotonic_ns();
        run();
        batch_ns[b] = ct_monotonic_ns() - start_ns;
    }
    qsort(batch_ns, BATCHES, sizeof(batch_ns[0]), by_value);
    return (double)batch_ns[BATCHES / 2] / OPERATIONS;
}

int main(void)
{
    pthread_t partner;
    char line[32];
    stay_on_processor();
    pages = mmap(NULL, (size_t)OPERATIONS * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                 -1, 0);
    if (pages == MAP_FAILED || pthread_create(&partner, NULL, be_partner, NULL) != 0) {
        perror("kernel_events_cost");
        return EXIT_FAILURE;
    }
    /* Disable huge pages, because only small pages cause a fault for each page. */
    madvise(pages, (size_t)OPERATIONS * PAGE_BYTES, MADV_NOHUGEPAGE);
    call_driver();
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = '\0';
        for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
            if (strcmp(line, works[i].name) == 0)
                printf("%.1f\n", round_of(works[i].prepare, works[i].run));
        }
        fflush(stdout);
    }
    return EXIT_SUCCESS;
}
