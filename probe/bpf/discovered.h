/* Shared by discover.bpf.c and discover.c: the counted calls to one function of a kernel module. */
#ifndef CT_PROBE_DISCOVERED_H
#define CT_PROBE_DISCOVERED_H

#ifdef __bpf__
typedef __u64 uint64_t;
typedef __u32 uint32_t;
#else
#include <stdint.h>
#endif

struct ct_discovered {
    uint64_t calls;
    uint64_t first_ns; /* of the first call: its time on CLOCK_MONOTONIC */
    uint32_t depth;    /* of the first call: the number of counted functions that it was in */
    uint32_t reserved;
};

#endif
