/* Probes on many functions of kernel modules. They count the calls made by a program and its children
 * (discover.bpf.c). The kernel removes the probes when this process ends, even if it is killed. */
#ifndef CT_PROBE_DISCOVER_COUNTS_H
#define CT_PROBE_DISCOVER_COUNTS_H

#include "discovered.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { CT_COUNTS_EVENTS_MAX = 512 }; /* functions, if each needs a perf event */

/* A place in the code where calls are counted. Places with the same number share one count. */
struct ct_count_place {
    const char *symbol; /* with the compiler's suffixes */
    uint64_t address;
    uint32_t number;
};

struct ct_counts;

/* Attaches to the places. All numbers of places are below `numbers`. If `is_multi` is true, first tries a
 * single link to all functions (Linux 5.18, CONFIG_FPROBE). *refused is the number of places where the kernel
 * permits no probe. Returns 0 or -errno. It is -E2BIG if perf events would be necessary, but there are too
 * many places for them. */
int ct_counts_begin(struct ct_counts **counts, const struct ct_count_place *place, size_t places,
                    size_t numbers, bool is_multi, size_t *refused);
/* Counts the calls made by the process, and by the processes and threads that it creates from now on. */
int ct_counts_follow(const struct ct_counts *counts, pid_t pid);
int ct_counts_read(const struct ct_counts *counts, uint32_t number, struct ct_discovered *discovered);
/* Returns whether a single link is attached to all functions. */
bool ct_counts_is_multi(const struct ct_counts *counts);
/* Returns the number of threads that could not be followed. */
uint64_t ct_counts_missed(const struct ct_counts *counts);
void ct_counts_end(struct ct_counts *counts);

#endif
