#include "text_numbers.h"

#include "intern.h"
#include "utf8.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = CT_TEXTS_MAX * 2 };

struct ct_text_slot {
    int64_t number; /* 0: empty */
    uint32_t hash;
    uint32_t at; /* offset into ct_texts.text */
};

static uint32_t hash_text(uint64_t seed, const char *text, size_t bytes)
{
    uint64_t h = seed ^ UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    return (uint32_t)(h ^ h >> 32);
}

/* Allocates both buffers at full size with the first text. Their pages are touched only as they fill. */
static bool allocate(struct ct_texts *texts)
{
    if (!texts->slots) {
        texts->slots = calloc(SLOTS, sizeof(*texts->slots));
        texts->seed = ct_hash_seed();
    }
    if (!texts->text)
        texts->text = malloc(CT_TEXTS_BYTES_MAX);
    return texts->slots && texts->text;
}

int64_t ct_texts_get(struct ct_texts *texts, const char *text, bool *is_new)
{
    *is_new = false;
    const size_t bytes = strlen(text) + 1;
    if (bytes > CT_TEXTS_BYTES_MAX || !allocate(texts))
        return 0;
    const uint32_t hash = hash_text(texts->seed, text, bytes - 1);
    size_t place = hash % SLOTS;
    for (; texts->slots[place].number; place = (place + 1) % SLOTS) {
        const struct ct_text_slot *slot = &texts->slots[place];
        if (slot->hash == hash && strcmp(texts->text + slot->at, text) == 0)
            return slot->number;
    }
    if (texts->count == CT_TEXTS_MAX || texts->bytes + bytes > CT_TEXTS_BYTES_MAX) {
        ct_texts_reset(texts, texts->next);
        place = hash % SLOTS;
    }
    memcpy(texts->text + texts->bytes, text, bytes);
    texts->slots[place] = (struct ct_text_slot){ texts->next, hash, (uint32_t)texts->bytes };
    texts->bytes += bytes;
    texts->count++;
    *is_new = true;
    return texts->next++;
}

void ct_texts_reset(struct ct_texts *texts, int64_t first)
{
    if (texts->slots)
        memset(texts->slots, 0, SLOTS * sizeof(*texts->slots));
    texts->count = texts->bytes = 0;
    texts->next = first;
}

void ct_texts_finish(struct ct_texts *texts)
{
    free(texts->slots);
    free(texts->text);
    *texts = (struct ct_texts){ 0 };
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
