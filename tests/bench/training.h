/* Segments as the hook writes them, full of the calls of a PyTorch training loop, for benchmarks of the
 * collector and of what it writes. Every failure ends the program with a sentence. */
#ifndef TRAINING_H
#define TRAINING_H

#include <stdint.h>

struct training_segment {
    uint64_t first_ns; /* calls return from here on, so all of it should lie in the past */
    uint64_t gap_ns;   /* between two returns of a lane, on average; 2 or more */
    uint32_t lanes, calls_per_lane;
};

/* Reads how often which function is called: training.calls.tsv. */
void training_read(const char *path);
/* Makes the segment of one process at `path`. Returns when its last call returned. */
uint64_t training_write(const char *path, const struct training_segment *wanted);

#endif
