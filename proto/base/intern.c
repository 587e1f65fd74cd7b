#include "intern.h"

#include "clock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { SLOTS_FIRST = 1024 };

void ct_intern_init(struct ct_intern *intern, size_t key_bytes, size_t limit, int64_t first)
{
    *intern =
        (struct ct_intern){ .key_bytes = key_bytes, .limit = limit, .next = first, .seed = ct_hash_seed() };
}

uint64_t ct_hash_seed(void)
{
    uint64_t seed;
    return getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == sizeof(seed) ? seed : ct_monotonic_ns();
}

/* Hashes a key. Combines both halves of each product, so that every bit of the key affects all bits of the
 * hash, depending on the seed. */
static uint64_t hash(const struct ct_intern *intern, const uint64_t *key)
{
    uint64_t h = intern->seed;
    for (size_t i = 0; i < intern->key_bytes / 8; i++) {
        const unsigned __int128 product = (unsigned __int128)(h ^ key[i]) * UINT64_C(0x9e3779b97f4a7c15);
        h = (uint64_t)product ^ (uint64_t)(product >> 64);
    }
    return h;
}

static uint64_t *slot_at(const struct ct_intern *intern, size_t i)
{
    return intern->slots + (i & intern->mask) * (1 + intern->key_bytes / 8);
}

/* Returns the key's slot, or the empty slot for the key if it has none yet. */
static uint64_t *find_slot(const struct ct_intern *intern, const void *key)
{
    for (size_t i = hash(intern, key);; i++) {
        uint64_t *slot = slot_at(intern, i);
        if (!slot[0] || memcmp(slot + 1, key, intern->key_bytes) == 0)
            return slot;
    }
}

static bool grow(struct ct_intern *intern)
{
    const size_t words = 1 + intern->key_bytes / 8, old_slots = intern->slots ? intern->mask + 1 : 0;
    const size_t slots = old_slots ? old_slots * 2 : SLOTS_FIRST;
    uint64_t *old = intern->slots, *grown = calloc(slots * words, sizeof(*grown));
    if (!grown)
        return false;
    intern->slots = grown;
    intern->mask = slots - 1;
    for (size_t i = 0; i < old_slots; i++) {
        const uint64_t *from = old + i * words;
        if (from[0])
            memcpy(find_slot(intern, from + 1), from, words * sizeof(*from));
    }
    free(old);
    return true;
}

int64_t ct_intern_find(const struct ct_intern *intern, const void *key)
{
    return intern->slots ? (int64_t)find_slot(intern, key)[0] : 0;
}

int64_t ct_intern_get(struct ct_intern *intern, const void *key, bool *is_new)
{
    *is_new = false;
    uint64_t *slot = intern->slots ? find_slot(intern, key) : NULL;
    if (slot && slot[0])
        return (int64_t)slot[0];
    const bool is_full = intern->count >= intern->limit;
    if (is_full)
        ct_intern_reset(intern, intern->next);
    const bool grows = !intern->slots || intern->count + intern->count / 2 >= intern->mask;
    if (grows && !grow(intern))
        return 0;
    if (is_full || grows)
        slot = find_slot(intern, key);
    slot[0] = (uint64_t)intern->next;
    memcpy(slot + 1, key, intern->key_bytes);
    intern->count++;
    *is_new = true;
    return intern->next++;
}

void ct_intern_reset(struct ct_intern *intern, int64_t first)
{
    if (intern->slots)
        memset(intern->slots, 0, (intern->mask + 1) * (1 + intern->key_bytes / 8) * sizeof(*intern->slots));
    intern->count = 0;
    intern->next = first;
}

void ct_intern_finish(struct ct_intern *intern)
{
    free(intern->slots);
    intern->slots = NULL;
}
