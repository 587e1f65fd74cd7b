#include "buffers.h"

#include <stdatomic.h>
#include <sys/mman.h>

/* A training that is bound by its launches makes 8 MB of records in a second. All buffers together have room
 * for two seconds. */
enum { BUFFERS = 32, BUFFER_BYTES = 512 * 1024 };

enum use { FREE, TAKEN, FULL };
static struct {
    _Atomic uint32_t use;
    size_t valid;
} buffers[BUFFERS];
static uint8_t *memory;

bool ct_buffers_begin(void)
{
    if (memory)
        return true;
    void *pages = mmap(NULL, (size_t)BUFFERS * BUFFER_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memory = pages == MAP_FAILED ? NULL : pages;
    return memory != NULL;
}

uint8_t *ct_buffers_take(size_t *bytes)
{
    *bytes = BUFFER_BYTES;
    for (size_t i = 0; i < BUFFERS; i++) {
        uint32_t use = FREE;
        /* Pairs with the release in ct_buffers_read(). */
        if (atomic_compare_exchange_strong_explicit(&buffers[i].use, &use, TAKEN, memory_order_acquire,
                                                    memory_order_relaxed))
            return memory + i * BUFFER_BYTES;
    }
    *bytes = 0;
    return NULL;
}

void ct_buffers_give(uint8_t *buffer, size_t valid)
{
    const size_t i = (size_t)(buffer - memory) / BUFFER_BYTES;
    if (!buffer || i >= BUFFERS)
        return;
    buffers[i].valid = valid < BUFFER_BYTES ? valid : BUFFER_BYTES;
    /* Pairs with the acquire in ct_buffers_read(). */
    atomic_store_explicit(&buffers[i].use, FULL, memory_order_release);
}

void ct_buffers_read(void (*read)(uint8_t *buffer, size_t valid, void *data), void *data)
{
    for (size_t i = 0; i < BUFFERS; i++) {
        if (atomic_load_explicit(&buffers[i].use, memory_order_acquire) != FULL)
            continue;
        if (buffers[i].valid)
            read(memory + i * BUFFER_BYTES, buffers[i].valid, data);
        atomic_store_explicit(&buffers[i].use, FREE, memory_order_release);
    }
}
