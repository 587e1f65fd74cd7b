#include "interner.h"

#include "intern.h"
#include "utf8.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = CT_INTERNER_TEXTS_MAX * 2 };

struct ct_interned {
    int64_t number; /* 0: empty */
    uint32_t hash;
    uint32_t at; /* offset into ct_interner.text */
};

static uint32_t hash_text(uint64_t seed, const char *text, size_t bytes)
{
    uint64_t h = seed ^ UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    return (uint32_t)(h ^ h >> 32);
}

/* Allocates both buffers at full size when the first string is added. The buffers' pages are touched only as
 * the buffers fill. */
static bool allocate(struct ct_interner *interner)
{
    if (!interner->slots) {
        interner->slots = calloc(SLOTS, sizeof(*interner->slots));
        interner->seed = ct_hash_seed();
    }
    if (!interner->text)
        interner->text = malloc(CT_INTERNER_BYTES_MAX);
    return interner->slots && interner->text;
}

/* Returns the place of a string, or the empty place where it belongs. The table is never full. */
static size_t place_of(const struct ct_interner *interner, const char *text, uint32_t hash)
{
    size_t place = hash % SLOTS;
    for (; interner->slots[place].number; place = (place + 1) % SLOTS) {
        const struct ct_interned *slot = &interner->slots[place];
        if (slot->hash == hash && strcmp(interner->text + slot->at, text) == 0)
            break;
    }
    return place;
}

int64_t ct_interner_find(const struct ct_interner *interner, const char *text)
{
    if (!interner->slots)
        return 0;
    const uint32_t hash = hash_text(interner->seed, text, strlen(text));
    return interner->slots[place_of(interner, text, hash)].number;
}

int64_t ct_interner_get(struct ct_interner *interner, const char *text, bool *is_new)
{
    *is_new = false;
    const size_t bytes = strlen(text) + 1;
    if (bytes > CT_INTERNER_BYTES_MAX || !allocate(interner))
        return 0;
    const uint32_t hash = hash_text(interner->seed, text, bytes - 1);
    size_t place = place_of(interner, text, hash);
    if (interner->slots[place].number)
        return interner->slots[place].number;
    if (interner->count == CT_INTERNER_TEXTS_MAX || interner->bytes + bytes > CT_INTERNER_BYTES_MAX) {
        ct_interner_reset(interner, interner->next);
        place = hash % SLOTS;
    }
    memcpy(interner->text + interner->bytes, text, bytes);
    interner->slots[place] = (struct ct_interned){ interner->next, hash, (uint32_t)interner->bytes };
    interner->bytes += bytes;
    interner->count++;
    *is_new = true;
    return interner->next++;
}

void ct_interner_reset(struct ct_interner *interner, int64_t first)
{
    if (interner->slots)
        memset(interner->slots, 0, SLOTS * sizeof(*interner->slots));
    interner->count = interner->bytes = 0;
    interner->next = first;
}

void ct_interner_finish(struct ct_interner *interner)
{
    free(interner->slots);
    free(interner->text);
    *interner = (struct ct_interner){ 0 };
}

void ct_text_clean(char *to, const char *from, size_t bytes)
{
    for (size_t i = 0; i < bytes;) {
        uint32_t point;
        const size_t n = ct_utf8_next(from + i, bytes - i, &point);
        if (n == 0) {
            to[i++] = '?';
        } else {
            memcpy(to + i, from + i, n);
            i += n;
        }
    }
    to[bytes] = '\0';
}
