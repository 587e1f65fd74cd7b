/* The kernel defines the layout (Documentation/bpf/ringbuf.rst, kernel/bpf/ringbuf.c): a page with the
 * consumer position, a page with the producer position, and the data, mapped twice. A record begins with a
 * header of 8 bytes. The first four bytes contain the record's length, a busy bit that is set while the
 * record is being written, and a discard bit. */
#include "kernel_ring.h"

#include <errno.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

int ct_kernel_ring_map(struct ct_kernel_ring *ring, int map, uint64_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    *ring = (struct ct_kernel_ring){ .bytes = bytes };
    void *consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
    if (consumer == MAP_FAILED)
        return -errno;
    void *rest = mmap(NULL, page + 2 * bytes, PROT_READ, MAP_SHARED, map, (off_t)page);
    if (rest == MAP_FAILED) {
        const int error = errno;
        munmap(consumer, page);
        return -error;
    }
    ring->consumer = consumer;
    ring->producer = rest;
    ring->data = (const uint8_t *)rest + page;
    return 0;
}

void ct_kernel_ring_unmap(struct ct_kernel_ring *ring)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (!ring->consumer)
        return;
    munmap(ring->consumer, page);
    munmap((void *)(uintptr_t)ring->producer, page + 2 * ring->bytes);
    *ring = (struct ct_kernel_ring){ 0 };
}

uint64_t ct_kernel_ring_end(const struct ct_kernel_ring *ring)
{
    return __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);
}

static uint64_t position_of(const struct ct_kernel_ring *ring)
{
    return __atomic_load_n(ring->consumer, __ATOMIC_RELAXED);
}

/* Returns the header of the record at the position. The acquire pairs with the kernel's release when it
 * commits a record. */
static uint32_t head_at(const struct ct_kernel_ring *ring, uint64_t position)
{
    const uint8_t *head = ring->data + (position & (ring->bytes - 1));
    return __atomic_load_n((const uint32_t *)(const void *)head, __ATOMIC_ACQUIRE);
}

static uint64_t behind(uint64_t position, uint32_t head)
{
    const uint32_t length = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
    return position + (length + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
}

const void *ct_kernel_ring_next(const struct ct_kernel_ring *ring, uint64_t end, size_t least, size_t *bytes)
{
    for (;;) {
        const uint64_t position = position_of(ring);
        if (position >= end)
            return NULL;
        const uint32_t head = head_at(ring, position);
        if (head & BPF_RINGBUF_BUSY_BIT)
            return NULL;
        *bytes = head;
        if (!(head & BPF_RINGBUF_DISCARD_BIT) && head >= least)
            return ring->data + (position & (ring->bytes - 1)) + BPF_RINGBUF_HDR_SZ;
        __atomic_store_n(ring->consumer, behind(position, head), __ATOMIC_RELEASE);
    }
}

void ct_kernel_ring_pass(struct ct_kernel_ring *ring)
{
    const uint64_t position = position_of(ring);
    __atomic_store_n(ring->consumer, behind(position, head_at(ring, position)), __ATOMIC_RELEASE);
}

bool ct_kernel_ring_is_read(const struct ct_kernel_ring *ring, uint64_t end)
{
    return position_of(ring) >= end;
}
