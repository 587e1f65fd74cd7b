/* sim_observe.h: the driver's reports to its observer (simcuda_observe.h). */
#ifndef SIM_OBSERVE_H
#define SIM_OBSERVE_H

#include "sim_op.h"
#include "simcuda_observe.h"

/* If WATCH_OBSERVED is set when a call begins, the gate calls these functions before and after the call's
 * model. observe_enter() returns the correlation of the call that a signal handler's call interrupts, or 0,
 * for observe_leave(). */
uint64_t observe_enter(uint32_t row);
void observe_leave(uint32_t row, uint64_t interrupted);

bool observe_is_on(void);
/* Returns the correlation of the calling thread's open call, or 0 if there is none. */
uint64_t observe_correlation(void);
/* Reports an op that runs from `start_ns` until the stream's `busy_until_ns`. Ignores ops other than kernels,
 * copies and sets. */
void observe_work(const struct op *op, CUstream stream, int64_t start_ns);
/* Reports a whole graph, after its nodes have been reported. The graph runs from `start_ns` until the
 * stream's `busy_until_ns`. */
void observe_graph(const struct op_origin *origin, CUstream stream, int64_t start_ns);

#endif
