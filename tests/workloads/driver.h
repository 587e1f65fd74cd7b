/*
 * driver.h: how a workload obtains the driver's functions. Like real programs, a workload can use linking,
 * dlsym, or cuGetProcAddress.
 */
#ifndef WORKLOAD_DRIVER_H
#define WORKLOAD_DRIVER_H

#include "cuda_min.h"

/* cuda_min.h does not declare this function, because its cuGraphInstantiate is the newest version. */
CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log,
                               size_t log_bytes);

struct driver {
#define DRIVER(name, version, export) __typeof__(&export) name;
#include "driver.def"
#undef DRIVER
};

extern struct driver cu;

enum via { VIA_LINKED, VIA_DLSYM, VIA_PROCADDRESS };

/* Fills in `cu`, or reports missing functions to stderr and exits with status 1. */
void driver_open(enum via via);

#endif
