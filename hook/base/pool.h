/* A pool of objects, identified by index, in memory that is never freed. Readers without a lock may see an
 * object that has since been reused, but never access unmapped memory. Writers hold the table lock. */
#ifndef CT_POOL_H
#define CT_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CT_POOL_BLOCK = 1024, CT_POOL_BLOCKS = 4096 };

/* Every object begins with this link, which the object's owner must not change. */
struct ct_pool_link {
    uint32_t next_free;
};

/* The owner sets `object_bytes`. The other fields start as zero. */
struct ct_pool {
    uint8_t *_Atomic blocks[CT_POOL_BLOCKS];
    size_t object_bytes;
    uint32_t used; /* highest number allocated so far */
    uint32_t free; /* the number most recently returned, or 0 */
};

/* Returns the index of a free object, which is at least 1, or 0 if out of memory or indexes. A reused object
 * still has its old contents. */
uint32_t ct_pool_take(struct ct_pool *pool);
void ct_pool_give(struct ct_pool *pool, uint32_t number);
/* Marks all objects as never allocated, but keeps the memory for reuse. */
void ct_pool_forget(struct ct_pool *pool);

/* True if the pool has memory for the object with this index, which may come from an untrusted source. */
static inline bool ct_pool_holds(struct ct_pool *pool, uint32_t number)
{
    return number / CT_POOL_BLOCK < CT_POOL_BLOCKS &&
           atomic_load_explicit(&pool->blocks[number / CT_POOL_BLOCK], memory_order_acquire);
}

/* Returns the object with the given index, which must have been allocated. */
static inline void *ct_pool_at(struct ct_pool *pool, uint32_t number)
{
    /* Pairs with the release in ct_pool_take(). */
    uint8_t *block = atomic_load_explicit(&pool->blocks[number / CT_POOL_BLOCK], memory_order_acquire);
    return block + number % CT_POOL_BLOCK * pool->object_bytes;
}

#endif
