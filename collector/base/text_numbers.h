/* Numbers for texts that applications make up: the same text gives the same number. Bounded: when the limit
 * is reached it starts anew, which costs duplicate rows in the database and nothing else. */
#ifndef CT_TEXTS_H
#define CT_TEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CT_TEXTS_MAX = 1 << 16, CT_TEXTS_BYTES_MAX = 8 << 20 };

struct ct_text_slot;

/* All zero but for `next`, 1 or more, is an empty one. */
struct ct_texts {
    struct ct_text_slot *slots;
    char *text; /* one behind the other, each with a NUL */
    size_t count, bytes;
    int64_t next;
    uint64_t seed;
};

/* The number of the NUL-terminated text; *is_new says that it was given just now. 0 without memory. */
int64_t ct_texts_get(struct ct_texts *texts, const char *text, bool *is_new);
/* Forgets all texts; numbers go on from `first`. */
void ct_texts_reset(struct ct_texts *texts, int64_t first);
void ct_texts_finish(struct ct_texts *texts);

/* Copies `bytes` bytes and a NUL; what is no UTF-8 becomes '?'. Readers of the database refuse other text. */
void ct_text_clean(char *to, const char *from, size_t bytes);

#endif
