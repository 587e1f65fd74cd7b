#include "histogram.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS_FIRST = 64, SLOTS_KEPT = 4096 };

static struct ct_histogram_count *find(const struct ct_histogram *histogram, uint64_t key)
{
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = hash >> 32;; i++) {
        struct ct_histogram_count *slot = &histogram->slots[i & histogram->mask];
        if (slot->count == 0 || slot->key == key)
            return slot;
    }
}

static bool grow(struct ct_histogram *histogram)
{
    const size_t slots = histogram->slots ? 2 * (histogram->mask + 1) : SLOTS_FIRST;
    struct ct_histogram grown = { .slots = calloc(slots, sizeof(*grown.slots)),
                                  .count = histogram->count,
                                  .mask = slots - 1 };
    if (!grown.slots)
        return false;
    for (size_t i = 0; histogram->slots && i <= histogram->mask; i++) {
        if (histogram->slots[i].count > 0)
            *find(&grown, histogram->slots[i].key) = histogram->slots[i];
    }
    free(histogram->slots);
    *histogram = grown;
    return true;
}

_Bool ct_histogram_add(struct ct_histogram *histogram, uint64_t key, uint64_t at_ns)
{
    if ((!histogram->slots || 4 * histogram->count >= 3 * histogram->mask) && !grow(histogram))
        return false;
    struct ct_histogram_count *slot = find(histogram, key);
    if (slot->count++ == 0) {
        slot->key = key;
        slot->first_ns = at_ns;
        histogram->count++;
    }
    slot->last_ns = at_ns;
    return true;
}

int ct_histogram_each(const struct ct_histogram *histogram,
                      int (*each)(const struct ct_histogram_count *count, void *data), void *data)
{
    int rc = 0;
    for (size_t i = 0; histogram->count > 0 && i <= histogram->mask && rc == 0; i++) {
        if (histogram->slots[i].count > 0)
            rc = each(&histogram->slots[i], data);
    }
    return rc;
}

void ct_histogram_clear(struct ct_histogram *histogram)
{
    if (histogram->count == 0)
        return;
    if (histogram->mask + 1 > SLOTS_KEPT) {
        ct_histogram_finish(histogram);
        return;
    }
    memset(histogram->slots, 0, (histogram->mask + 1) * sizeof(*histogram->slots));
    histogram->count = 0;
}

void ct_histogram_finish(struct ct_histogram *histogram)
{
    free(histogram->slots);
    *histogram = (struct ct_histogram){ 0 };
}
