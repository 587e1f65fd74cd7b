/* The times and the arguments of a probed process's call. */
#ifndef CT_PROBE_PROBED_CALL_H
#define CT_PROBE_PROBED_CALL_H

#include "decoded.h"
#include "functions.h"
#include "thread_table.h"

struct ct_producer;

/* Removes the time that the probe itself took at both ends of the call: `entry_ns` and `return_ns`. An event
 * of the kernel may have happened in that time. The call does not end before it. `thread` may be NULL. */
void ct_probed_call_correct(uint64_t entry_ns, uint64_t return_ns, const struct ct_thread *thread,
                            uint64_t *start, uint64_t *end);

/* Runs the function's decoder. The names that it learns are written to the producer's lane, which is held.
 * `call` is the first part of a struct ct_probe_values or, for CT_PROBE_IOCTL, of a struct ct_probe_ioctl.
 * `thread` and `producer` may be NULL. */
struct ct_decoded ct_probed_call_decode(const struct ct_function_table *functions,
                                        const struct ct_probe_record *call, const struct ct_thread *thread,
                                        struct ct_producer *producer, uint64_t start, uint64_t end);

#endif
