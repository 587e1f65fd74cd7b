/* The elements of an array in a JSON document, one after the other, in bounded memory: documents of others
 * have gigabytes. */
#ifndef CT_JSON_ELEMENTS_H
#define CT_JSON_ELEMENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { CT_ELEMENT_BYTES = 128 * 1024 }; /* the longest element that is given out */

struct ct_json_elements {
    FILE *file;
    int64_t at;    /* bytes read so far */
    int64_t begin; /* where the last value begins */
    size_t bytes;  /* its length; CT_ELEMENT_BYTES or more: it is too long, and `text` has not all of it */
    char text[CT_ELEMENT_BYTES + 1];
};

/* Returns the next byte that is no white space, which is read; EOF at the end. */
int ct_json_next_byte(struct ct_json_elements *from);
/* Reads a value whose first byte is `first`, which was read. False where the document ends within it. */
bool ct_json_value(struct ct_json_elements *from, int first);

#endif
