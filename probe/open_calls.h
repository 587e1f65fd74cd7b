/* The open calls of a thread, which the BPF programs show to the writer. */
#ifndef CT_PROBE_OPEN_CALLS_H
#define CT_PROBE_OPEN_CALLS_H

#include "calls.h"
#include "lane.h"

#include <stdbool.h>

/* Copies the thread's open calls. Returns false if they changed at the same time. If the thread has ended, it
 * has no open calls, and its entry may belong to another thread. */
bool ct_open_calls_read(const struct ct_probe_thread *thread, uint32_t tid, struct ct_probe_open *open,
                        uint32_t *depth);
/* Returns whether the lane shows exactly the calls in `open`, each beginning `entry_ns` later than its
 * `start`. */
bool ct_open_calls_are_shown(const struct ct_lane *lane, const struct ct_probe_open *open, uint32_t depth,
                             uint64_t entry_ns);

#endif
