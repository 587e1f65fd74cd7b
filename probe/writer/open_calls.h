/* The open calls of a thread, which the BPF programs show to the writer. */
#ifndef CT_PROBE_OPEN_CALLS_H
#define CT_PROBE_OPEN_CALLS_H

#include "calls.h"
#include "lane.h"

#include <stdbool.h>

/* Copies the thread's open calls. Returns false if the calls changed while they were being copied. If the
 * thread has ended, its entry may already belong to another thread, so the copy contains no open calls. */
bool ct_open_calls_read(const struct ct_probe_thread *thread, uint32_t tid, struct ct_probe_open *open,
                        uint32_t *depth);
/* Returns whether the lane already shows the calls in `open`, judging by their number and by the start of the
 * innermost call. In the lane, calls begin `entry_ns` after their `start`. */
bool ct_open_calls_are_shown(const struct ct_lane *lane, const struct ct_probe_open *open, uint32_t depth,
                             uint64_t entry_ns);

#endif
