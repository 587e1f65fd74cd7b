/* Assigns IDs to keys. Equal keys always get the same ID. This is a hash table with open addressing and
 * fixed-size keys. When a table reaches its limit, it is emptied and starts over, which only causes duplicate
 * rows in the database. */
#ifndef CT_INTERN_H
#define CT_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ct_intern {
    size_t key_bytes; /* a multiple of 8 */
    size_t limit;     /* entries */
    size_t count, mask;
    uint64_t *slots; /* each slot contains the number (0: empty), then the key */
    uint64_t seed;
    int64_t next;
};

/* Returns a random hash seed, so that no program can construct keys or strings that all collide. */
uint64_t ct_hash_seed(void);

/* Initialises an empty table. The first ID will be `first` (1 or more). */
void ct_intern_init(struct ct_intern *intern, size_t key_bytes, size_t limit, int64_t first);
/* Returns the ID of `key`, after assigning an ID if necessary, or 0 if out of memory. Sets *is_new to true if
 * the ID is new. */
int64_t ct_intern_get(struct ct_intern *intern, const void *key, bool *is_new);
/* Returns the ID of `key`, or 0 if it has none yet. */
int64_t ct_intern_find(const struct ct_intern *intern, const void *key);
/* Forgets all keys. IDs continue from `first`. */
void ct_intern_reset(struct ct_intern *intern, int64_t first);
void ct_intern_finish(struct ct_intern *intern);

#endif
