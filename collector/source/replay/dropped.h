/* Counts the elements of a file that cannot be stored, by reason. */
#ifndef CT_DROPPED_H
#define CT_DROPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CT_DROPPED_KINDS = 24, CT_DROPPED_BYTES = 320 };

struct ct_dropped {
    const char *noun; /* "line" or "event" */
    size_t kinds;
    struct {
        const char *reason; /* a string literal, which is not printed */
        uint64_t count;
        int64_t place; /* of the first element; 0: unknown */
        char first[CT_DROPPED_BYTES];
    } kind[CT_DROPPED_KINDS]; /* the last kind also counts further reasons */
};

/* Counts an element. `what` describes it, and is kept if no element was dropped for this reason before. */
void ct_drop(struct ct_dropped *dropped, const char *reason, int64_t place, const char *what);
/* Writes a sentence about a reason. */
void ct_dropped_text(const struct ct_dropped *dropped, size_t kind, char *text, size_t bytes);

#endif
