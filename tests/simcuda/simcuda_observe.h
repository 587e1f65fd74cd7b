/* simcuda_observe.h: lets another library observe the simulated driver, as CUPTI observes the real one. The
 * real driver does not export simcuda_observe(), so the simulated CUPTI looks it up by name
 * (tests/simcupti). */
#ifndef SIMCUDA_OBSERVE_H
#define SIMCUDA_OBSERVE_H

#include <stdint.h>

enum sim_work_kind { SIM_WORK_KERNEL, SIM_WORK_COPY, SIM_WORK_SET, SIM_WORK_GRAPH };
enum sim_place { SIM_PLACE_HOST, SIM_PLACE_DEVICE, SIM_PLACE_ARRAY };

/* Describes a kernel, a copy or a set on a stream, or a whole graph, which is reported after its nodes. The
 * times are on CLOCK_MONOTONIC, and may be in the future. */
struct sim_work {
    enum sim_work_kind kind;
    uint64_t correlation; /* what `enter` returned for the call that submitted the work */
    int64_t start_ns, end_ns;
    const char *name;         /* of a kernel; valid during the call; NULL for other work */
    uint64_t bytes;           /* 0 for kernels and graphs */
    enum sim_place from, to;  /* of a copy */
    uint32_t context, stream; /* unique in the process */
    uint64_t node;            /* the graph node that ran; 0 for none */
    uint32_t graph;           /* the executable graph that ran; 0 for none */
};

struct sim_observer {
    /* Called in the calling thread when a call begins, and when it ends. `enter` returns the call's
     * correlation, which is not 0. */
    uint64_t (*enter)(const char *function);
    void (*leave)(const char *function, uint64_t correlation);
    /* Called when the start and end times of the work are known. The caller holds the driver's lock. */
    void (*work)(const struct sim_work *work);
};

/* Replaces the observer, or removes it if `observer` is NULL. The observer must stay valid forever, because
 * other threads may still be calling it. */
typedef void simcuda_observe_function(const struct sim_observer *observer);
simcuda_observe_function simcuda_observe;

#endif
