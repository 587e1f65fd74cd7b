/* Process ranges, which may overlap arbitrarily. An open range is stored in a small cell, or in a big cell if
 * its message is long. A range's ID contains the index of its cell, and is never reused, so it is harmless to
 * end a range twice, or to end a range that was never started. No lock is needed: a thread takes a free cell
 * from a list by compare-and-swap, and the thread that removes the ID from a cell owns the cell. */
#include "range_process.h"

#include "bound.h"
#include "current.h"
#include "manual_event.h"
#include "names.h"
#include "range.h"
#include "rows.h"
#include "table.h"
#include "test_point.h"

#include <string.h>

enum {
    SMALL_CELLS = 1 << 16,
    BIG_CELLS = 1 << 12,
    SMALL_BYTES = 256,
    BIG_BYTES = 256 + CT_RANGE_MESSAGE_BYTES,
    CELL_BITS = 17, /* identifier bits for the cell number: 0 if there is no cell, then small cells, then big
                     * cells */
};
static_assert(1 + SMALL_CELLS + BIG_CELLS <= 1 << CELL_BITS, "every cell has a number");

struct cell {
    _Atomic uint64_t id;   /* 0 while free */
    _Atomic uint32_t next; /* index + 1 of the next free cell; 0: none */
    uint32_t reserved;
    struct ct_range_kept kept;
    char text[]; /* its message */
};
static_assert(sizeof(struct cell) <= SMALL_BYTES / 2, "room for a message");

static struct pool {
    const uint32_t cells, cell_bytes, first; /* number of the first cell */
    uint8_t *_Atomic memory;
    /* The lower half is the index + 1 of the first free cell. The upper half counts changes, so that a list
     * that has changed and changed back is not mistaken for an unchanged list. */
    _Atomic uint64_t free;
    _Atomic uint32_t made; /* number of cells that have ever been in use */
} small = { .cells = SMALL_CELLS, .cell_bytes = SMALL_BYTES, .first = 1 },
  big = { .cells = BIG_CELLS, .cell_bytes = BIG_BYTES, .first = 1 + SMALL_CELLS };

static _Atomic uint64_t serials;
static uint32_t row_start = CT_ROWS_ALL;

bool ct_range_process_begin(void)
{
    row_start = ct_row_extra(CT_LAYER_NVTX, CT_CATEGORY_range, "nvtxRangeStart");
    return row_start != CT_ROWS_ALL;
}

static struct cell *cell_at(struct pool *pool, uint32_t index)
{
    uint8_t *memory = atomic_load_explicit(&pool->memory, memory_order_acquire);
    return memory ? (struct cell *)(void *)(memory + (size_t)index * pool->cell_bytes) : NULL;
}

static bool map_pool(struct pool *pool)
{
    if (atomic_load_explicit(&pool->memory, memory_order_acquire))
        return true;
    if (!ct_table_lock())
        return false;
    uint8_t *memory = atomic_load_explicit(&pool->memory, memory_order_relaxed);
    if (!memory) {
        memory = ct_pages_map((size_t)pool->cells * pool->cell_bytes);
        atomic_store_explicit(&pool->memory, memory, memory_order_release);
    }
    ct_table_unlock();
    return memory != NULL;
}

static struct cell *take(struct pool *pool, uint32_t *index)
{
    if (!map_pool(pool))
        return NULL;
    /* Pairs with the release in give(). If another thread takes the cell at the same time, `next` may have
     * any value, but the exchange will fail. */
    uint64_t head = atomic_load_explicit(&pool->free, memory_order_acquire);
    while ((uint32_t)head) {
        struct cell *cell = cell_at(pool, (uint32_t)head - 1);
        const uint32_t next = atomic_load_explicit(&cell->next, memory_order_relaxed);
        const uint64_t changed = ((head >> 32) + 1) << 32 | next;
        if (atomic_compare_exchange_weak_explicit(&pool->free, &head, changed, memory_order_acquire,
                                                  memory_order_acquire)) {
            *index = (uint32_t)head - 1;
            return cell;
        }
    }
    uint32_t made = atomic_load_explicit(&pool->made, memory_order_relaxed);
    while (made < pool->cells) {
        if (atomic_compare_exchange_weak_explicit(&pool->made, &made, made + 1, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            *index = made;
            return cell_at(pool, made);
        }
    }
    return NULL;
}

static void give(struct pool *pool, struct cell *cell, uint32_t index)
{
    uint64_t head = atomic_load_explicit(&pool->free, memory_order_relaxed), changed;
    do {
        atomic_store_explicit(&cell->next, (uint32_t)head, memory_order_relaxed);
        changed = ((head >> 32) + 1) << 32 | (index + 1);
    } while (!atomic_compare_exchange_weak_explicit(&pool->free, &head, changed, memory_order_release,
                                                    memory_order_relaxed));
}

/* Stores the range in a cell. Returns the cell's index, which is at least 1, or 0 if there is no free
 * cell. */
static uint32_t store(const struct ct_range_kept *kept, uint32_t own_bytes, uint64_t serial)
{
    struct pool *pool = sizeof(struct cell) + own_bytes <= SMALL_BYTES ? &small : &big;
    uint32_t index;
    struct cell *cell = take(pool, &index);
    if (!cell)
        return 0;
    CT_TEST_POINT("range_process.taken");
    cell->kept = *kept;
    if (own_bytes > 0) {
        memcpy(cell->text, kept->text, own_bytes);
        cell->kept.text = cell->text;
    }
    cell->kept.start = ct_now();
    /* Pairs with the acquire in ct_range_end(). */
    atomic_store_explicit(&cell->id, serial << CELL_BITS | (pool->first + index), memory_order_release);
    CT_TEST_POINT("range_process.started");
    return pool->first + index;
}

uint64_t ct_range_start(const struct ct_said *said)
{
    const uint64_t serial = atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed) + 1;
    enum ct_loss_cause cause;
    struct ct_range_thread *thread = ct_range_hold(said->frame, &cause);
    uint32_t number = 0;
    if (thread) {
        uint16_t function;
        struct ct_producer *producer = ct_manual_event_begin(row_start, &function);
        if (producer) {
            struct ct_range_kept kept;
            const uint32_t own_bytes = ct_range_keep(&kept, said, ct_range_room(thread));
            kept.epoch = ct_range_epoch(producer);
            number = store(&kept, own_bytes, serial);
            if (!number)
                ct_manual_event_lose(row_start, CT_LOSS_MEMORY);
        }
        ct_range_release(thread);
    } else {
        ct_manual_event_lose(row_start, cause);
    }
    return serial << CELL_BITS | number;
}

static void record(const struct cell *cell, uint64_t id, const void *frame)
{
    uint16_t function;
    struct ct_producer *producer = ct_manual_event_begin(row_start, &function);
    if (!ct_range_lasts(&cell->kept, producer))
        return;
    enum ct_loss_cause cause;
    struct ct_range_thread *thread = ct_range_hold(frame, &cause);
    if (!thread) {
        ct_manual_event_lose(row_start, cause);
        return;
    }
    ct_range_record(thread, producer, row_start, &cell->kept, ct_range_depth(producer, frame), id);
    ct_range_release(thread);
}

void ct_range_end(uint64_t id, const void *frame)
{
    const uint32_t number = (uint32_t)id & ((1U << CELL_BITS) - 1);
    struct pool *pool = number < big.first ? &small : &big;
    if (number < pool->first || number - pool->first >= pool->cells)
        return;
    const uint32_t index = number - pool->first;
    struct cell *cell = cell_at(pool, index);
    uint64_t expected = id;
    /* Pairs with the release in store(). */
    if (!cell || !atomic_compare_exchange_strong_explicit(&cell->id, &expected, 0, memory_order_acquire,
                                                          memory_order_relaxed))
        return;
    record(cell, id, frame);
    give(pool, cell, index);
}
