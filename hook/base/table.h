/* A table from 64-bit keys to 32-bit values, for what the hook remembers by handle or address. Readers take
 * no lock and may be signal handlers; writers hold the table lock. */
#ifndef CT_TABLE_H
#define CT_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ct_table_slots;

/* All zero is an empty table. */
struct ct_table {
    struct ct_table_slots *_Atomic current;
    struct ct_table_slots *spare; /* the table that was current before: readers may still be in it */
    _Atomic uint32_t rebuilds;    /* begun: a reader that finds it changed looks again */
};

/* The value of `key`; 0 when it has none, and for key 0. */
uint32_t ct_table_get(struct ct_table *table, uint64_t key);
/* 0 takes the key out. False when there is no memory for it: the key then has no value. */
bool ct_table_set(struct ct_table *table, uint64_t key, uint32_t value);
/* Takes all keys out. What readers may be in is left where it is, and lost. */
void ct_table_forget(struct ct_table *table);
/* Calls `visit` for each key that has a value; `visit` may set. */
void ct_table_each(struct ct_table *table, void (*visit)(uint64_t key, uint32_t value, void *data),
                   void *data);

/* The lock of what is remembered in tables (lock.h): false when the caller goes without. */
bool ct_table_lock(void);
void ct_table_unlock(void);
void ct_table_lock_forget(void);

#endif
