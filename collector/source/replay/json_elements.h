/* Reads the elements of an array in a JSON document one by one, in bounded memory, because other programs'
 * documents can be gigabytes in size. */
#ifndef CT_JSON_ELEMENTS_H
#define CT_JSON_ELEMENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { CT_ELEMENT_BYTES = 128 * 1024 }; /* the longest element returned */

struct ct_json_elements {
    FILE *file;
    int64_t at;    /* number of bytes read so far */
    int64_t begin; /* start of the last value */
    size_t bytes;  /* length; from CT_ELEMENT_BYTES on, the value is too long and `text` is incomplete */
    char text[CT_ELEMENT_BYTES + 1];
};

/* Skips white space and reads the next byte. Returns the byte, or EOF at the end. */
int ct_json_next_byte(struct ct_json_elements *from);
/* Reads a value whose first byte `first` has already been read. Returns false if the document ends within the
 * value. */
bool ct_json_value(struct ct_json_elements *from, int first);

#endif
