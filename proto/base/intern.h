/* Numbers for combinations: the same key gives the same number. Open addressing, keys of a fixed size. When a
 * table has grown to its limit it starts anew, which costs duplicate rows in the database and nothing else.
 */
#ifndef CT_INTERN_H
#define CT_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ct_intern {
    size_t key_bytes; /* a multiple of 8 */
    size_t limit;     /* entries */
    size_t count, mask;
    uint64_t *slots; /* each: number (0: empty), then the key */
    uint64_t seed;
    int64_t next;
};

/* Returns a random start for hashes: no program can make up keys or texts that all have one place. */
uint64_t ct_hash_seed(void);

/* Numbers start at `first`, 1 or more. */
void ct_intern_init(struct ct_intern *intern, size_t key_bytes, size_t limit, int64_t first);
/* The number of `key`; *is_new says that it was given just now. 0 without memory. */
int64_t ct_intern_get(struct ct_intern *intern, const void *key, bool *is_new);
/* The same of one that has a number already; 0 for another. */
int64_t ct_intern_find(const struct ct_intern *intern, const void *key);
/* Forgets all keys; numbers go on from `first`. */
void ct_intern_reset(struct ct_intern *intern, int64_t first);
void ct_intern_finish(struct ct_intern *intern);

#endif
