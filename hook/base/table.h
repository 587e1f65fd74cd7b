/* A hash table from 64-bit keys to 32-bit values, for data about a handle or an address. Readers take no lock
 * and may be signal handlers. Writers hold the table lock. */
#ifndef CT_TABLE_H
#define CT_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ct_table_slots;

/* A table whose fields are all zero is empty. */
struct ct_table {
    struct ct_table_slots *_Atomic current;
    struct ct_table_slots *spare; /* the previous table, which readers may still be using */
    _Atomic uint32_t rebuilds;    /* number of rebuilds begun; a reader that sees it change starts over */
};

/* Returns the value of `key`, or 0 if the key has none. Key 0 never has a value. */
uint32_t ct_table_get(struct ct_table *table, uint64_t key);
/* Sets a key's value, or removes the key if the value is 0. If out of memory, returns false, and the key has
 * no value. */
bool ct_table_set(struct ct_table *table, uint64_t key, uint32_t value);
/* Removes all keys. The memory is leaked, since a reader may still be using it. */
void ct_table_forget(struct ct_table *table);
/* Calls `visit` for each key that has a value. `visit` may call ct_table_set(). */
void ct_table_each(struct ct_table *table, void (*visit)(uint64_t key, uint32_t value, void *data),
                   void *data);

/* The lock for data kept in tables (lock.h). If ct_table_lock() returns false, the caller must continue
 * without the lock. */
bool ct_table_lock(void);
void ct_table_unlock(void);
void ct_table_lock_forget(void);

#endif
