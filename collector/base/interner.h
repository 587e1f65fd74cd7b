/* Assigns IDs to strings chosen by applications. Equal strings get the same ID. The table has a fixed size
 * and is emptied when it is full. After that, strings that were already known get new IDs, at the cost of
 * duplicate rows in the database. */
#ifndef CT_INTERNER_H
#define CT_INTERNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CT_INTERNER_TEXTS_MAX = 1 << 16, CT_INTERNER_BYTES_MAX = 8 << 20 };

struct ct_interned;

/* In an empty interner, every field is zero except `next`, which is at least 1. */
struct ct_interner {
    struct ct_interned *slots;
    char *text; /* the texts one after another, each with its NUL */
    size_t count, bytes;
    int64_t next;
    uint64_t seed;
};

/* Returns the ID of a NUL-terminated string, or 0 if out of memory or if the string is too long for the
 * table. Sets *is_new if this call assigned the ID. */
int64_t ct_interner_get(struct ct_interner *interner, const char *text, bool *is_new);
/* Returns the ID of a string, or 0 if it has none. */
int64_t ct_interner_find(const struct ct_interner *interner, const char *text);
/* Forgets all strings. Numbering continues at `first`. */
void ct_interner_reset(struct ct_interner *interner, int64_t first);
void ct_interner_finish(struct ct_interner *interner);

/* Copies `bytes` bytes and adds a NUL. Replaces bytes that are not valid UTF-8 with '?', because readers of
 * the database reject invalid text. */
void ct_text_clean(char *to, const char *from, size_t bytes);

#endif
