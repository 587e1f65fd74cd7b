/* sim_entry.c: the gate between a call's entry point and its model. The gate counts calls, delays or blocks
 * them on demand, and rejects calls before cuInit and in forked children. */
#include "sim_entry.h"

#include "sim_observe.h"
#include "sim_settings.h"
#include "simcuda.h"
#include "simcuda_verify.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

atomic_uint sim_watch = WATCH_NEW | WATCH_UNINITIALISED;

/* A sleep may last this much longer than requested. */
enum { SPIN_NS = 50000 };

static pthread_mutex_t setup_lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t latency_ns[ROW_COUNT];
static uint32_t blocked_row;
static bool blocks_at_return; /* block after the call has done its work, rather than before */

/* Returns true for functions that work even before cuInit, and in the child of a process that had called
 * cuInit. The real driver was used to find out which functions these are. */
static bool needs_no_init(uint32_t row)
{
    static const uint32_t rows[] = {
        ROW_cuInit,           ROW_cuDriverGetVersion,  ROW_cuGetErrorName,   ROW_cuGetErrorString,
        ROW_cuGetProcAddress, ROW_cuGetProcAddress_v2, ROW_cuGetExportTable,
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i] == row)
            return true;
    return false;
}

static int compare_names(const void *name, const void *function)
{
    return strcmp(name, ((const struct sim_function *)function)->name);
}

const struct sim_function *entry_function(const char *name)
{
    return bsearch(name, sim_functions, ROW_COUNT, sizeof *sim_functions, compare_names);
}

EXPORTED void *simcuda_inner_function(const char *name)
{
    const struct sim_function *found = entry_function(name);
    return found ? found->inner : NULL;
}

static uint32_t row_named(const char *variable, const char *name)
{
    const struct sim_function *found = entry_function(name);
    if (!found)
        settings_refuse(variable, name, "the name of an exported function");
    return (uint32_t)(found - sim_functions);
}

/* SIMCUDA_LATENCY=NAME=N,NAME=N */
static bool read_latencies(void)
{
    const char *variable = "SIMCUDA_LATENCY", *value = getenv(variable);
    memset(latency_ns, 0, sizeof latency_ns);
    if (!value || !*value)
        return false;
    char *list = strdup(value), *rest = list;
    for (char *item; (item = strsep(&rest, ","));) {
        char *number = strchr(item, '='), *end;
        if (!number)
            settings_refuse(variable, value, "NAME=NANOSECONDS[,...]");
        *number++ = '\0';
        const int64_t ns = strtoll(number, &end, 10);
        if (end == number || *end || ns < 0)
            settings_refuse(variable, value, "NAME=NANOSECONDS[,...]");
        latency_ns[row_named(variable, item)] = ns;
    }
    free(list);
    return true;
}

static bool read_blocked(void)
{
    const char *name = getenv("SIMCUDA_BLOCK");
    if (!name || !*name)
        return false;
    blocked_row = row_named("SIMCUDA_BLOCK", name);
    const char *at = getenv("SIMCUDA_BLOCK_AT");
    blocks_at_return = at && strcmp(at, "return") == 0;
    if (at && *at && !blocks_at_return)
        settings_refuse("SIMCUDA_BLOCK_AT", at, "return");
    return true;
}

static bool read_verify(void)
{
    const char *value = getenv("SIMCUDA_VERIFY");
    if (!value || !*value)
        return false;
    if (strcmp(value, "checksum") != 0)
        verify_answer((int32_t)settings_number("SIMCUDA_VERIFY", 0, 999, 0));
    return true;
}

static void after_fork_child(void)
{
    driver_after_fork_child();
    setup_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    const unsigned old = atomic_load(&sim_watch);
    unsigned now = WATCH_NEW | (old & (WATCH_UNINITIALISED | WATCH_FORKED));
    if (!(old & (WATCH_NEW | WATCH_UNINITIALISED)) && !sim_settings.works_after_fork)
        now |= WATCH_FORKED;
    atomic_store(&sim_watch, now);
}

/* A constructor registers the fork handlers before any call is made, so that no fork is missed. */
__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(driver_before_fork, driver_after_fork_parent, after_fork_child);
}

/* Runs at the first call in a process. Reads the environment, and opens a counter file for the process. */
static void setup(void)
{
    pthread_mutex_lock(&setup_lock);
    if (atomic_load(&sim_watch) & WATCH_NEW) {
        settings_read();
        unsigned more = read_latencies() ? WATCH_LATENCY : 0;
        more |= read_blocked() ? WATCH_BLOCK : 0;
        more |= read_verify() ? WATCH_VERIFY : 0;
        const char *counts = getenv("SIMCUDA_COUNTS");
        if (counts && *counts) {
            counts_open(counts);
            more |= WATCH_COUNTS;
        }
        atomic_fetch_or(&sim_watch, more);
        atomic_fetch_and(&sim_watch, ~(unsigned)WATCH_NEW);
    }
    pthread_mutex_unlock(&setup_lock);
}

void entry_initialised(void)
{
    atomic_fetch_and(&sim_watch, ~(unsigned)WATCH_UNINITIALISED);
}

bool entry_is_forked(void)
{
    return atomic_load(&sim_watch) & WATCH_FORKED;
}

/* Writes to SIMCUDA_BLOCK_NOTIFY, and then blocks until it reads a byte or end-of-file from
 * SIMCUDA_BLOCK_RELEASE, or forever if SIMCUDA_BLOCK_RELEASE is not set. */
static void block(void)
{
    const char *notify = getenv("SIMCUDA_BLOCK_NOTIFY"), *release = getenv("SIMCUDA_BLOCK_RELEASE");
    if (notify && *notify) {
        const int fd = open(notify, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, "b", 1) != 1)
            settings_refuse("SIMCUDA_BLOCK_NOTIFY", notify, "a FIFO or file to write to");
        close(fd);
    }
    if (release && *release) {
        const int fd = open(release, O_RDONLY | O_CLOEXEC);
        char byte;
        if (fd < 0 || read(fd, &byte, 1) < 0)
            settings_refuse("SIMCUDA_BLOCK_RELEASE", release, "a FIFO or file to read from");
        close(fd);
        return;
    }
    for (;;)
        pause();
}

static unsigned watch_after_setup(void)
{
    if (atomic_load(&sim_watch) & WATCH_NEW)
        setup();
    return atomic_load(&sim_watch);
}

ALIGNS_ITS_STACK int32_t entry_misaligned(uint32_t row)
{
    return watch_after_setup() & WATCH_VERIFY ? verify_misaligned(row) : 0;
}

enum entry_path entry_begin(struct entry *entry)
{
    const unsigned watch = watch_after_setup();
    if (watch & WATCH_COUNTS)
        counts_entered(entry->row);
    if (watch & WATCH_LATENCY)
        entry->entered_ns = clock_now_ns();
    if (watch & WATCH_BLOCK && entry->row == blocked_row && !blocks_at_return)
        block();
    entry->is_observed = watch & WATCH_OBSERVED;
    if (entry->is_observed)
        entry->interrupted = observe_enter(entry->row);
    if (watch & WATCH_VERIFY)
        return ENTRY_VERIFY;
    if (watch & (WATCH_UNINITIALISED | WATCH_FORKED) && !needs_no_init(entry->row)) {
        entry->status = CUDA_ERROR_NOT_INITIALIZED;
        return ENTRY_DECIDED;
    }
    return ENTRY_RUN;
}

/* Waits until `until_ns`. Sleeps for most of that time, because other programs need the processor, and then
 * spins. */
static void wait_until(int64_t until_ns)
{
    clock_sleep_until_ns(until_ns - SPIN_NS);
    while (clock_now_ns() < until_ns)
        ;
}

int32_t entry_end(struct entry *entry)
{
    const unsigned watch = atomic_load(&sim_watch);
    if (watch & WATCH_BLOCK && entry->row == blocked_row && blocks_at_return)
        block();
    if (watch & WATCH_LATENCY)
        wait_until(entry->entered_ns + latency_ns[entry->row]);
    if (entry->is_observed)
        observe_leave(entry->row, entry->interrupted);
    if (watch & WATCH_COUNTS)
        counts_returned(entry->row);
    return entry->status;
}
