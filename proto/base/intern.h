/* Numbers for combinations: the same key gets the same number. A hash table with open addressing and keys of
 * a fixed size. When a table has reached its limit it starts again, which only costs duplicate rows in the
 * database. */
#ifndef CT_INTERN_H
#define CT_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ct_intern {
    size_t key_bytes; /* a multiple of 8 */
    size_t limit;     /* entries */
    size_t count, mask;
    uint64_t *slots; /* each has the number (0: empty), then the key */
    uint64_t seed;
    int64_t next;
};

/* Returns a random seed for hashes, so that no program can construct keys or texts that all collide. */
uint64_t ct_hash_seed(void);

/* The first number is `first`, 1 or more. */
void ct_intern_init(struct ct_intern *intern, size_t key_bytes, size_t limit, int64_t first);
/* Returns the number of `key`, 0 without memory. Sets *is_new if the number has just been assigned. */
int64_t ct_intern_get(struct ct_intern *intern, const void *key, bool *is_new);
/* Returns the number of a key that already has one, 0 for any other. */
int64_t ct_intern_find(const struct ct_intern *intern, const void *key);
/* Forgets all keys. Numbers continue from `first`. */
void ct_intern_reset(struct ct_intern *intern, int64_t first);
void ct_intern_finish(struct ct_intern *intern);

#endif
