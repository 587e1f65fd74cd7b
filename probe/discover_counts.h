/* Probes on many functions of modules, which count calls of a program and its children (discover.bpf.c). The
 * kernel removes them when this process ends, even by SIGKILL. */
#ifndef CT_PROBE_DISCOVER_COUNTS_H
#define CT_PROBE_DISCOVER_COUNTS_H

#include "discovered.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { CT_COUNTS_EVENTS_MAX = 512 }; /* functions, if each needs a perf event */

/* A place where calls are counted. Several places may have the same number. */
struct ct_count_place {
    const char *symbol; /* with the compiler's suffixes */
    uint64_t address;
    uint32_t number;
};

struct ct_counts;

/* Attaches to the places. `numbers` is the number of numbers. If `is_multi`, tries one link to all functions
 * (Linux 5.18, CONFIG_FPROBE) first. *refused is the number of places where the kernel permits no probe.
 * Returns 0 or -errno: -E2BIG if only perf events are possible, and there are too many places. */
int ct_counts_begin(struct ct_counts **counts, const struct ct_count_place *place, size_t places,
                    size_t numbers, bool is_multi, size_t *refused);
/* Counts the calls of that process, and of processes and threads that it makes from now on. */
int ct_counts_follow(const struct ct_counts *counts, pid_t pid);
int ct_counts_read(const struct ct_counts *counts, uint32_t number, struct ct_discovered *discovered);
/* Returns whether one link counts all functions. */
bool ct_counts_is_multi(const struct ct_counts *counts);
/* Returns the number of threads that could not be followed. */
uint64_t ct_counts_missed(const struct ct_counts *counts);
void ct_counts_end(struct ct_counts *counts);

#endif
