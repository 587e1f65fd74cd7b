#include "tally.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_FIRST = 64, SLOTS_KEPT = 4096 };

static struct ct_tally_count *find(const struct ct_tally *tally, uint64_t key)
{
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = hash >> 32;; i++) {
        struct ct_tally_count *slot = &tally->slots[i & tally->mask];
        if (slot->count == 0 || slot->key == key)
            return slot;
    }
}

static bool grow(struct ct_tally *tally)
{
    const size_t slots = tally->slots ? 2 * (tally->mask + 1) : SLOTS_FIRST;
    struct ct_tally grown = { .slots = calloc(slots, sizeof(*grown.slots)),
                              .count = tally->count,
                              .mask = slots - 1 };
    if (!grown.slots)
        return false;
    for (size_t i = 0; tally->slots && i <= tally->mask; i++) {
        if (tally->slots[i].count > 0)
            *find(&grown, tally->slots[i].key) = tally->slots[i];
    }
    free(tally->slots);
    *tally = grown;
    return true;
}

_Bool ct_tally_add(struct ct_tally *tally, uint64_t key, uint64_t at_ns)
{
    if ((!tally->slots || 4 * tally->count >= 3 * tally->mask) && !grow(tally))
        return false;
    struct ct_tally_count *slot = find(tally, key);
    if (slot->count++ == 0) {
        slot->key = key;
        slot->first_ns = at_ns;
        tally->count++;
    }
    slot->last_ns = at_ns;
    return true;
}

int ct_tally_each(const struct ct_tally *tally, int (*each)(const struct ct_tally_count *count, void *data),
                  void *data)
{
    int rc = 0;
    for (size_t i = 0; tally->count > 0 && i <= tally->mask && rc == 0; i++) {
        if (tally->slots[i].count > 0)
            rc = each(&tally->slots[i], data);
    }
    return rc;
}

void ct_tally_clear(struct ct_tally *tally)
{
    if (tally->count == 0)
        return;
    if (tally->mask + 1 > SLOTS_KEPT) {
        ct_tally_finish(tally);
        return;
    }
    memset(tally->slots, 0, (tally->mask + 1) * sizeof(*tally->slots));
    tally->count = 0;
}

void ct_tally_finish(struct ct_tally *tally)
{
    free(tally->slots);
    *tally = (struct ct_tally){ 0 };
}
