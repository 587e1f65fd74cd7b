/* The times and the arguments of a probed process's call. */
#ifndef CT_PROBE_PROBED_CALL_H
#define CT_PROBE_PROBED_CALL_H

#include "decoded.h"
#include "functions.h"
#include "thread_table.h"

struct ct_producer;

/* Excludes the time that the probe itself took at both ends of the call: `entry_ns` and `return_ns`. A kernel
 * event may have happened during that time; the corrected call does not end before such an event. It takes at
 * least 1 ns, although the probe may have taken longer than the call. `thread` may be NULL. */
void ct_probed_call_correct(uint64_t entry_ns, uint64_t return_ns, const struct ct_thread *thread,
                            uint64_t *start, uint64_t *end);

/* Runs the function's decoder. Names that the decoder learns are written to the producer's lane, which must
 * be held. `call` is the beginning of a struct ct_probe_values or, if the record is a CT_PROBE_IOCTL, of a
 * struct ct_probe_ioctl. `thread` and `producer` may be NULL. */
struct ct_decoded ct_probed_call_decode(const struct ct_function_table *functions,
                                        const struct ct_probe_record *call, const struct ct_thread *thread,
                                        struct ct_producer *producer, uint64_t start, uint64_t end);

#endif
