/* Returned indexes are reused first, so a pool never takes more memory than its largest number of live
 * objects needs. */
#include "pool.h"

#include "bound.h"

uint32_t ct_pool_take(struct ct_pool *pool)
{
    const uint32_t again = pool->free;
    if (again) {
        const struct ct_pool_link *link = ct_pool_at(pool, again);
        pool->free = link->next_free;
        return again;
    }
    const uint32_t number = pool->used + 1;
    if (number / CT_POOL_BLOCK >= CT_POOL_BLOCKS)
        return 0;
    uint8_t *_Atomic *block = &pool->blocks[number / CT_POOL_BLOCK];
    if (!atomic_load_explicit(block, memory_order_relaxed)) {
        uint8_t *memory = ct_pages_map(CT_POOL_BLOCK * pool->object_bytes);
        if (!memory)
            return 0;
        atomic_store_explicit(block, memory, memory_order_release);
    }
    pool->used = number;
    return number;
}

void ct_pool_give(struct ct_pool *pool, uint32_t number)
{
    struct ct_pool_link *link = ct_pool_at(pool, number);
    link->next_free = pool->free;
    pool->free = number;
}

void ct_pool_forget(struct ct_pool *pool)
{
    pool->used = 0;
    pool->free = 0;
}
