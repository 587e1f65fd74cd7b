/* Numbers texts that applications choose. Equal texts get equal numbers. The table is bounded: when full, it
 * starts over, which only costs duplicate rows in the database. */
#ifndef CT_TEXTS_H
#define CT_TEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CT_TEXTS_MAX = 1 << 16, CT_TEXTS_BYTES_MAX = 8 << 20 };

struct ct_text_slot;

/* An empty table has every field zero except `next`, which is at least 1. */
struct ct_texts {
    struct ct_text_slot *slots;
    char *text; /* texts one after another, each with a NUL */
    size_t count, bytes;
    int64_t next;
    uint64_t seed;
};

/* Returns the number of a NUL-terminated text, or 0 if out of memory. Sets *is_new if the number was assigned
 * by this call. */
int64_t ct_texts_get(struct ct_texts *texts, const char *text, bool *is_new);
/* Forgets all texts. Further numbers start at `first`. */
void ct_texts_reset(struct ct_texts *texts, int64_t first);
void ct_texts_finish(struct ct_texts *texts);

/* Copies `bytes` bytes and adds a NUL. Replaces bytes that are not UTF-8 by '?', because readers of the
 * database reject invalid text. */
void ct_text_clean(char *to, const char *from, size_t bytes);

#endif
