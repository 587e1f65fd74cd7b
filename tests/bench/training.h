/* Creates segments like the hook's, filled with the calls of a PyTorch training loop, for benchmarks of the
 * collector and its output. On any failure, prints a message and exits. */
#ifndef TRAINING_H
#define TRAINING_H

#include <stdint.h>

struct training_segment {
    uint64_t first_ns; /* calls return from this time on; all return times should be in the past */
    uint64_t gap_ns;   /* average time between two returns in a lane; at least 2 */
    uint32_t lanes, calls_per_lane;
};

/* Reads training.calls.tsv, which contains the number of calls to each function. */
void training_read(const char *path);
/* Creates the segment of one process at `path`. Returns the return time of the process's last call. */
uint64_t training_write(const char *path, const struct training_segment *wanted);

#endif
