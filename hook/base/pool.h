/* Objects by number, in memory that is never given back: a reader without a lock may find an object that has
 * become another one, but never memory that is not there. Writers hold the table lock. */
#ifndef CT_POOL_H
#define CT_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CT_POOL_BLOCK = 1024, CT_POOL_BLOCKS = 4096 };

/* Every object begins with this; its owner leaves it alone. */
struct ct_pool_link {
    uint32_t next_free;
};

/* `object_bytes` is set by the owner, the rest is zero at first. */
struct ct_pool {
    uint8_t *_Atomic blocks[CT_POOL_BLOCKS];
    size_t object_bytes;
    uint32_t used; /* numbers given out so far, 0 excepted */
    uint32_t free; /* the first of those that came back, 0 for none */
};

/* A number from 1 on; 0 when there is no memory or no number. The object holds what its predecessor left. */
uint32_t ct_pool_take(struct ct_pool *pool);
void ct_pool_give(struct ct_pool *pool, uint32_t number);
/* All numbers count as never given out; the memory is used again. */
void ct_pool_forget(struct ct_pool *pool);

/* True if there is memory behind a number that somebody else claims to be one. */
static inline bool ct_pool_holds(struct ct_pool *pool, uint32_t number)
{
    return number / CT_POOL_BLOCK < CT_POOL_BLOCKS &&
           atomic_load_explicit(&pool->blocks[number / CT_POOL_BLOCK], memory_order_acquire);
}

/* The object of a number that was given out once. */
static inline void *ct_pool_at(struct ct_pool *pool, uint32_t number)
{
    /* Pairs with the release in ct_pool_take(). */
    uint8_t *block = atomic_load_explicit(&pool->blocks[number / CT_POOL_BLOCK], memory_order_acquire);
    return block + number % CT_POOL_BLOCK * pool->object_bytes;
}

#endif
