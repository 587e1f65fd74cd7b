/* Reads a BPF ring buffer (BPF_MAP_TYPE_RINGBUF).
 *
 * libbpf's own reader continues as long as the kernel adds records, and does not report how far it has read.
 * A writer must read up to a known position, since its segment is complete up to the time when it looked up
 * that position. */
#ifndef CT_KERNEL_RING_H
#define CT_KERNEL_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ct_kernel_ring {
    uint64_t *consumer; /* in a page of its own */
    const uint64_t *producer;
    const uint8_t *data; /* mapped twice in a row, so that no record is split */
    uint64_t bytes;      /* a power of two */
};

/* Maps the ring whose descriptor is `map`, and whose data area has `bytes` bytes. Returns 0 or -errno. */
int ct_kernel_ring_map(struct ct_kernel_ring *ring, int map, uint64_t bytes);
void ct_kernel_ring_unmap(struct ct_kernel_ring *ring);

/* Returns the position where the kernel will reserve the next record. */
uint64_t ct_kernel_ring_end(const struct ct_kernel_ring *ring);
/* Returns the next record before the position `end`, skipping records of less than `least` bytes, and sets
 * *bytes to its length. Returns NULL if there is none, or if the kernel is still writing it. */
const void *ct_kernel_ring_next(const struct ct_kernel_ring *ring, uint64_t end, size_t least, size_t *bytes);
/* Consumes the record that ct_kernel_ring_next() has returned, so that the kernel can overwrite it. */
void ct_kernel_ring_pass(struct ct_kernel_ring *ring);
/* Returns whether all records before `end` have been consumed. */
bool ct_kernel_ring_is_read(const struct ct_kernel_ring *ring, uint64_t end);

#endif
