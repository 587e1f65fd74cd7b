/* Numbers for names, from 1 in the order in which they come. */
#ifndef CT_NAME_NUMBERS_H
#define CT_NAME_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ct_names {
    void *tree;        /* tsearch(3)'s */
    const char **text; /* by number, as long as the names are there */
    size_t count, room;
    uint64_t max; /* so many have numbers; 0: all */
};

struct ct_name {
    uint64_t number;
    bool is_new; /* nobody asked for it before */
    const char *text;
};

/* The name's number; 0 for one too many, and with `failed` set for want of memory. */
struct ct_name ct_names_number(struct ct_names *names, const char *text, bool *failed);
void ct_names_free(struct ct_names *names);

#endif
