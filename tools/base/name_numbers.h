/* Assigns numbers to names, starting at 1, in the order in which the names are added. */
#ifndef CT_NAME_NUMBERS_H
#define CT_NAME_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ct_names {
    void *tree;        /* tsearch(3)'s */
    const char **text; /* the names, indexed by number; valid until ct_names_free() */
    size_t count, room;
    uint64_t max; /* the maximum number of names; 0: no limit */
};

struct ct_name {
    uint64_t number;
    bool is_new; /* first request for this name */
    const char *text;
};

/* Returns the name's number, or 0 if `max` other names already have numbers. If out of memory, returns the
 * number 0 and sets `failed`. */
struct ct_name ct_names_number(struct ct_names *names, const char *text, bool *failed);
void ct_names_free(struct ct_names *names);

#endif
