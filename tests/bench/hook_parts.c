/* Measures the cost of each part of the hook's fast path, and how much of that cost is hidden by the reads of
 * the counter. Use this program on processors where a traced call costs noticeably more than two counter
 * reads. It needs no GPU, no driver and no daemon.
 *
 * The program measures three things in interleaved rounds on one processor, in nanoseconds per call. A
 * round's figure is its median batch. First, the program measures the paths of hook_parts.h with a ring that
 * stays in the first-level cache. Second, it measures the whole path with a ring of 1 MiB, both with and
 * without a thread that reads the ring on another processor, as a collector does. Third, it measures single
 * instructions, and reads of the counter combined with independent work. Prints `variant round ns`. If the
 * kernel permits the use of performance counters, also prints `perf variant cycles instructions
 * branch_misses`, per call. */
#include "hook_parts.h"
#include "clock.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROUNDS = 25, BATCHES = 100, CALLS = 200, LOOPS = 2000, LOOP_BATCHES = 9 };
enum { SMALL_SLOTS = (2 << 10) / CT_SLOT_BYTES, LARGE_SLOTS = (1 << 20) / CT_SLOT_BYTES };

static double ns_per_tick;

/* ---- calls ---- */

static volatile uint64_t sink;
static int (*volatile bare_pointer)(void **) = parts_bare;

__attribute__((noinline)) static int wrapped(void **context)
{
    const int status = bare_pointer(context);
    sink = (uint64_t)status;
    return status;
}

__attribute__((noinline)) static int counted(void **context)
{
    const uint64_t start = ct_counter_read();
    const int status = bare_pointer(context);
    sink = ct_counter_read() - start;
    return status;
}

enum ring { RING_SMALL, RING_LARGE, RING_READ };

static const struct {
    const char *name;
    int (*call)(void **context);
    enum ring ring;
} paths[] = {
    { "bare", parts_bare, RING_SMALL },
    { "wrapper", wrapped, RING_SMALL },
    { "two_counter_reads", counted, RING_SMALL },
#define ROW(name, parts) { #name, parts_##name, RING_SMALL },
    HOOK_PATHS(ROW)
#undef ROW
        { "ring_1m", parts_whole, RING_LARGE },
    { "ring_1m_without_prefetch", parts_without_prefetch, RING_LARGE },
    { "ring_1m_read", parts_whole, RING_READ },
    { "ring_1m_read_without_prefetch", parts_without_prefetch, RING_READ },
};

static struct ct_lane *lane;
static uint8_t *small_ring, *large_ring;
static uint64_t
    large_position; /* the slot where the next batch begins, so that all cache lines are used in turn */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median_batch(int (*call)(void **context))
{
    static double batch[BATCHES];
    void *context;
    for (int b = 0; b < BATCHES; b++) {
        const uint64_t start = ct_counter_read();
        for (int i = 0; i < CALLS; i++)
            call(&context);
        batch[b] = (double)(ct_counter_read() - start) * ns_per_tick / CALLS;
    }
    qsort(batch, BATCHES, sizeof(batch[0]), by_value);
    return batch[BATCHES / 2];
}

/* ---- the reader on another processor ---- */

static struct {
    int cpu; /* the reader's processor; -1 if there is no other processor */
    sem_t asked, done;
} reader = { .cpu = -1 };

static void bind_to(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set) != 0) {
        perror("hook_parts: sched_setaffinity");
        exit(EXIT_FAILURE);
    }
}

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        ;
}

static void *read_rings(void *unused)
{
    bind_to(reader.cpu);
    for (;;) {
        wait_for(&reader.asked);
        uint64_t sum = 0;
        for (size_t i = 0; i < (size_t)LARGE_SLOTS * CT_SLOT_BYTES; i += 64)
            sum += *(volatile uint64_t *)(void *)(large_ring + i);
        sink = sum;
        sem_post(&reader.done);
    }
    return unused;
}

static void have_ring_read(void)
{
    sem_post(&reader.asked);
    wait_for(&reader.done);
}

static double measure_path(size_t p)
{
    const enum ring ring = paths[p].ring;
    if (ring == RING_READ)
        have_ring_read();
    parts_begin(lane, ring == RING_SMALL ? small_ring : large_ring,
                ring == RING_SMALL ? SMALL_SLOTS : LARGE_SLOTS);
    if (ring != RING_SMALL)
        parts_page.producer.position = large_position;
    const double ns = median_batch(paths[p].call);
    if (ring != RING_SMALL)
        large_position = parts_page.producer.position;
    return ns;
}

/* ---- instructions ---- */

/* Runs `body` repeatedly, with rdi pointing to memory that `body` may use. */
#define LOOP(name, body)                                                                                     \
    static void loop_##name(uint64_t count, void *memory)                                                    \
    {                                                                                                        \
        __asm__ volatile(".p2align 6\n1:\n" body "\n\tdecq %0\n\tjnz 1b"                                     \
                         : "+S"(count)                                                                       \
                         : "D"(memory)                                                                       \
                         : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "memory", "cc");                   \
    }
/* Work whose results are never used: four independent chains of additions, and stores to cached lines. */
#define ADDS(fours)                                                                                          \
    "\t.rept " #fours "\n\taddq $1, %%r8\n\taddq $1, %%r9\n\taddq $1, %%r10\n\taddq $1, %%r11\n\t.endr\n"
#define STORES(fours)                                                                                        \
    "\t.rept " #fours "\n\tmovq %%r8, (%%rdi)\n\tmovq %%r8, 8(%%rdi)\n\tmovq %%r8, 64(%%rdi)\n"              \
    "\tmovq %%r8, 72(%%rdi)\n\t.endr\n"
#define READ "\trdtsc\n"

LOOP(cycle, "\t.rept 10\n\taddq $1, %%r8\n\t.endr\n")
LOOP(rdtsc, READ)
LOOP(rdtsc_pair, READ READ)
LOOP(rdtscp, "\trdtscp\n")
LOOP(lfence_rdtsc, "\tlfence\n" READ)
LOOP(adds_16, ADDS(4))
LOOP(adds_32, ADDS(8))
LOOP(adds_64, ADDS(16))
LOOP(adds_128, ADDS(32))
LOOP(rdtsc_adds_16, READ ADDS(4))
LOOP(rdtsc_adds_32, READ ADDS(8))
LOOP(rdtsc_adds_64, READ ADDS(16))
LOOP(rdtsc_adds_128, READ ADDS(32))
LOOP(stores_16, STORES(4))
LOOP(stores_32, STORES(8))
LOOP(rdtsc_stores_16, READ STORES(4))
LOOP(rdtsc_stores_32, READ STORES(8))
/* Store a value and load it again: by a load of the same width, by a narrower load, or by a push and a
 * pop. */
LOOP(forward, "\tmovq %%rax, (%%rdi)\n\tmovq (%%rdi), %%rax\n")
LOOP(forward_narrow, "\tmovq %%rax, (%%rdi)\n\tmovl (%%rdi), %%eax\n")
/* Skip the red zone, because the compiler may be using it and does not know about the push. */
LOOP(forward_push_pop, "\tleaq -128(%%rsp), %%rsp\n\tpushq %%rax\n\tpopq %%rax\n\tleaq 128(%%rsp), %%rsp\n")
LOOP(rdtsc_forward, READ "\tmovq %%rax, (%%rdi)\n\tmovq (%%rdi), %%rcx\n\tmovq %%rcx, 8(%%rdi)\n")
LOOP(call_return, "\tleaq -128(%%rsp), %%rsp\n\tcall 2f\n\tjmp 3f\n2:\tret\n3:\tleaq 128(%%rsp), %%rsp\n")
LOOP(rdtsc_call_return,
     READ "\tleaq -128(%%rsp), %%rsp\n\tcall 2f\n\tjmp 3f\n2:\tret\n3:\tleaq 128(%%rsp), %%rsp\n")
/* Publish in three ways: with a plain store, as the hook does, with an exchange, or with a store and a
 * barrier. */
LOOP(publish_store, "\tmovq %%r8, (%%rdi)\n\tmovq %%r8, 64(%%rdi)\n")
LOOP(publish_xchg, "\tmovq %%r8, (%%rdi)\n\txchgq %%r9, 64(%%rdi)\n")
LOOP(publish_mfence, "\tmovq %%r8, (%%rdi)\n\tmovq %%r8, 64(%%rdi)\n\tmfence\n")

static const struct {
    const char *name;
    void (*run)(uint64_t count, void *memory);
    double per; /* how often one iteration of the loop executes the named instructions */
} loops[] = {
#define L(name)                                                                                              \
    {                                                                                                        \
        "instructions_" #name, loop_##name, 1                                                                \
    }
    { "instructions_cycle", loop_cycle, 10 },
    L(rdtsc),
    L(rdtsc_pair),
    L(rdtscp),
    L(lfence_rdtsc),
    L(adds_16),
    L(rdtsc_adds_16),
    L(adds_32),
    L(rdtsc_adds_32),
    L(adds_64),
    L(rdtsc_adds_64),
    L(adds_128),
    L(rdtsc_adds_128),
    L(stores_16),
    L(rdtsc_stores_16),
    L(stores_32),
    L(rdtsc_stores_32),
    L(forward),
    L(forward_narrow),
    L(forward_push_pop),
    L(rdtsc_forward),
    L(call_return),
    L(rdtsc_call_return),
    L(publish_store),
    L(publish_xchg),
    L(publish_mfence),
#undef L
};

static double measure_loop(size_t l)
{
    static _Alignas(64) uint64_t memory[64];
    double batch[LOOP_BATCHES];
    for (int b = 0; b < LOOP_BATCHES; b++) {
        const uint64_t start = ct_counter_read();
        loops[l].run(LOOPS, memory);
        batch[b] = (double)(ct_counter_read() - start) * ns_per_tick / LOOPS / loops[l].per;
    }
    qsort(batch, LOOP_BATCHES, sizeof(batch[0]), by_value);
    return batch[LOOP_BATCHES / 2];
}

/* ---- the processor's own counts ---- */

static int open_count(uint64_t config, int group)
{
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_HARDWARE,
        .size = sizeof(attributes),
        .config = config,
        .disabled = group < 0,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .read_format = PERF_FORMAT_GROUP,
    };
    return (int)syscall(SYS_perf_event_open, &attributes, 0, -1, group, 0);
}

static void print_counts(void)
{
    const int leader = open_count(PERF_COUNT_HW_CPU_CYCLES, -1);
    if (leader < 0 || open_count(PERF_COUNT_HW_INSTRUCTIONS, leader) < 0 ||
        open_count(PERF_COUNT_HW_BRANCH_MISSES, leader) < 0) {
        printf("perf unavailable %s\n", strerror(errno));
        return;
    }
    const double calls = (double)BATCHES * CALLS;
    for (size_t p = 0; p < CT_ARRAY_LENGTH(paths); p++) {
        uint64_t counts[4] = { 0 }; /* the number of counters, followed by the three counts */
        if (paths[p].ring == RING_READ && reader.cpu < 0)
            continue;
        ioctl(leader, PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP);
        ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
        measure_path(p);
        ioctl(leader, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
        if (read(leader, counts, sizeof(counts)) == (ssize_t)sizeof(counts) && counts[0] == 3)
            printf("perf %s %.1f %.1f %.4f\n", paths[p].name, (double)counts[1] / calls,
                   (double)counts[2] / calls, (double)counts[3] / calls);
    }
}

/* ---- set-up ---- */

static void *map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("hook_parts: mmap");
        exit(EXIT_FAILURE);
    }
    memset(memory, 1, bytes);
    memset(memory, 0, bytes);
    return memory;
}

/* Binds this thread to the highest allowed processor, and reserves the next one for the reader. */
static void take_places(void)
{
    cpu_set_t allowed;
    int own = -1;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        exit(EXIT_FAILURE);
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0 && reader.cpu < 0; cpu--) {
        if (!CPU_ISSET((size_t)cpu, &allowed))
            continue;
        if (own < 0)
            own = cpu;
        else
            reader.cpu = cpu;
    }
    sem_init(&reader.asked, 0, 0);
    sem_init(&reader.done, 0, 0);
    pthread_t thread;
    if (reader.cpu >= 0 && pthread_create(&thread, NULL, read_rings, NULL) != 0)
        reader.cpu = -1;
    bind_to(own);
}

int main(void)
{
    /* The ring follows the lane's header directly, as in a segment file. */
    lane = map(CT_LANE_HEADER_BYTES + (size_t)LARGE_SLOTS * CT_SLOT_BYTES);
    large_ring = (uint8_t *)lane + CT_LANE_HEADER_BYTES;
    /* The small ring begins at a page offset where neither the lane nor the producer is written. Addresses
     * with equal page offsets share a set of the first-level cache, and a processor may mistake them for each
     * other. */
    small_ring = (uint8_t *)map(4096 + 4096) + 2048;
    take_places();
    const uint64_t ticks = ct_counter_read(), ns = ct_monotonic_ns();
    while (ct_monotonic_ns() - ns < 50000000)
        ;
    ns_per_tick = (double)(ct_monotonic_ns() - ns) / (double)(ct_counter_read() - ticks);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t p = 0; p < CT_ARRAY_LENGTH(paths); p++) {
            if (paths[p].ring != RING_READ || reader.cpu >= 0)
                printf("%s %d %.3f\n", paths[p].name, round, measure_path(p));
        }
        for (size_t l = 0; l < CT_ARRAY_LENGTH(loops); l++)
            printf("%s %d %.3f\n", loops[l].name, round, measure_loop(l));
    }
    print_counts();
    return EXIT_SUCCESS;
}
