/* A hash table with open addressing. A removed key keeps its slot until the table is rebuilt, so that readers
 * need no lock. A rebuild copies the live keys to a different block of memory, then switches readers to that
 * block. Memory is never unmapped, since a reader may be using it, but a rebuild reuses the memory of the
 * table that the previous rebuild replaced. A reader still using that table detects the reuse by a change in
 * `rebuilds`. */
#include "table.h"

#include "bound.h"
#include "compiler.h"
#include "lock.h"

struct slot {
    _Atomic uint64_t key;
    _Atomic uint32_t value; /* 0: removed */
    uint32_t reserved;
};

struct ct_table_slots {
    uint64_t mask; /* slots - 1 */
    uint64_t used; /* slots with a key */
    uint64_t live; /* slots whose key has a value */
    uint64_t reserved;
    struct slot slot[];
};

enum { SLOTS_FIRST = 256 };

/* The table lock does not block signals, since many calls take it. If a call in a signal handler cannot take
 * the lock, it stores nothing in the tables, so a name or a range's size is lost. */
static struct ct_lock lock;

bool ct_table_lock(void)
{
    return ct_lock_take(&lock);
}

void ct_table_unlock(void)
{
    ct_lock_give(&lock);
}

void ct_table_lock_forget(void)
{
    ct_lock_forget(&lock);
}

static uint64_t hash(uint64_t key)
{
    return (key ^ key >> 29) * UINT64_C(0x9e3779b97f4a7c15) >> 7;
}

static struct slot *find(struct ct_table_slots *slots, uint64_t key)
{
    for (uint64_t i = hash(key), probes = 0; probes <= slots->mask; i++, probes++) {
        struct slot *slot = &slots->slot[i & slots->mask];
        /* Pairs with the release in put(). */
        const uint64_t found = atomic_load_explicit(&slot->key, memory_order_acquire);
        if (found == key)
            return slot;
        if (found == 0)
            return NULL;
    }
    return NULL;
}

uint32_t ct_table_get(struct ct_table *table, uint64_t key)
{
    for (;;) {
        const uint32_t rebuilds = atomic_load_explicit(&table->rebuilds, memory_order_acquire);
        struct ct_table_slots *slots = atomic_load_explicit(&table->current, memory_order_acquire);
        if (!slots || key == 0)
            return 0;
        struct slot *slot = find(slots, key);
        const uint32_t value = slot ? atomic_load_explicit(&slot->value, memory_order_relaxed) : 0;
        /* Pairs with the fence in rebuild(), so that a reader that sees data written by a rebuild also sees
         * that the rebuild has begun. */
        atomic_thread_fence(memory_order_acquire);
        if (CT_LIKELY(atomic_load_explicit(&table->rebuilds, memory_order_relaxed) == rebuilds))
            return value;
    }
}

static void put(struct ct_table_slots *slots, uint64_t key, uint32_t value)
{
    uint64_t i = hash(key);
    while (atomic_load_explicit(&slots->slot[i & slots->mask].key, memory_order_relaxed) != 0)
        i++;
    struct slot *slot = &slots->slot[i & slots->mask];
    atomic_store_explicit(&slot->value, value, memory_order_relaxed);
    atomic_store_explicit(&slot->key, key, memory_order_release);
    slots->used++;
    slots->live++;
}

static size_t bytes_of(uint64_t count)
{
    return sizeof(struct ct_table_slots) + count * sizeof(struct slot);
}

/* Returns memory for `count` empty slots. Uses the spare block if it has the right size. */
static struct ct_table_slots *empty(struct ct_table *table, uint64_t count)
{
    struct ct_table_slots *slots = table->spare;
    if (slots && slots->mask + 1 == count) {
        for (uint64_t i = 0; i < count; i++) { /* a reader may still be reading the slot */
            atomic_store_explicit(&slots->slot[i].key, 0, memory_order_relaxed);
            atomic_store_explicit(&slots->slot[i].value, 0, memory_order_relaxed);
        }
        slots->used = slots->live = 0;
        return slots;
    }
    slots = ct_pages_map(bytes_of(count));
    if (slots)
        slots->mask = count - 1;
    return slots;
}

/* Drops keys without a value. If that does not make enough room, doubles the table's size. */
static bool rebuild(struct ct_table *table)
{
    struct ct_table_slots *old = atomic_load_explicit(&table->current, memory_order_relaxed);
    uint64_t count = old ? old->mask + 1 : SLOTS_FIRST;
    if (old && old->live > count / 2)
        count *= 2;
    /* Release, so that a reader that sees this rebuild's count also sees the previous rebuild's table as the
     * current table, not as the spare. */
    atomic_fetch_add_explicit(&table->rebuilds, 1, memory_order_release);
    atomic_thread_fence(memory_order_release); /* before the spare is written */
    struct ct_table_slots *slots = empty(table, count);
    if (!slots)
        return false;
    for (uint64_t i = 0; old && i <= old->mask; i++) {
        const uint64_t key = atomic_load_explicit(&old->slot[i].key, memory_order_relaxed);
        const uint32_t value = atomic_load_explicit(&old->slot[i].value, memory_order_relaxed);
        if (key && value)
            put(slots, key, value);
    }
    table->spare = old;
    /* Pairs with the acquire in ct_table_get(). */
    atomic_store_explicit(&table->current, slots, memory_order_release);
    return true;
}

bool ct_table_set(struct ct_table *table, uint64_t key, uint32_t value)
{
    struct ct_table_slots *slots = atomic_load_explicit(&table->current, memory_order_relaxed);
    if (key == 0)
        return false;
    struct slot *slot = slots ? find(slots, key) : NULL;
    if (slot) {
        const bool was = atomic_load_explicit(&slot->value, memory_order_relaxed) != 0;
        atomic_store_explicit(&slot->value, value, memory_order_relaxed);
        slots->live += (uint64_t)(value != 0) - (uint64_t)was;
        return true;
    }
    if (value == 0)
        return true;
    if ((!slots || slots->used > slots->mask - slots->mask / 4) && !rebuild(table))
        return false;
    put(atomic_load_explicit(&table->current, memory_order_relaxed), key, value);
    return true;
}

void ct_table_forget(struct ct_table *table)
{
    table->spare = NULL;
    atomic_store_explicit(&table->current, NULL, memory_order_release);
}

void ct_table_each(struct ct_table *table, void (*visit)(uint64_t key, uint32_t value, void *data),
                   void *data)
{
    struct ct_table_slots *slots = atomic_load_explicit(&table->current, memory_order_relaxed);
    for (uint64_t i = 0; slots && i <= slots->mask; i++) {
        const uint64_t key = atomic_load_explicit(&slots->slot[i].key, memory_order_relaxed);
        const uint32_t value = atomic_load_explicit(&slots->slot[i].value, memory_order_relaxed);
        if (key && value)
            visit(key, value, data);
    }
}
