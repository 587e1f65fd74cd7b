/* Segments like the hook's, full of the calls of a PyTorch training loop, for benchmarks of the collector and
 * of its output. Every failure ends the program with a message. */
#ifndef TRAINING_H
#define TRAINING_H

#include <stdint.h>

struct training_segment {
    uint64_t first_ns; /* calls return from this time on; all of them should be in the past */
    uint64_t gap_ns;   /* average time between two returns in a lane; 2 or more */
    uint32_t lanes, calls_per_lane;
};

/* Reads training.calls.tsv, which has the number of calls of each function. */
void training_read(const char *path);
/* Makes the segment of one process at `path`. Returns the return time of its last call. */
uint64_t training_write(const char *path, const struct training_segment *wanted);

#endif
